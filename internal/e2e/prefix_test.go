package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit/prompttest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
)

// A provider finds in its cache what a request has had before, byte for byte from its
// beginning. Here workers die at random moments while people talk to agents whose models
// are at a fake provider that looks at exactly that.

// prefixKills is how often workers are killed in CI; make prefixes kills more.
const prefixKills = 24

// setting returns a number from the environment.
func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestPrefixes kills workers at random moments of conversations with parallel tools,
// reasoning that has to come back, edited approvals, frontend tools, reloads, and facts and
// states of the frontend that are different each time; on Redis another replica goes on.
// Every request has all of the one before of its thread, but for the tail, at its
// beginning, and the metric says so.
func TestPrefixes(t *testing.T) {
	t.Parallel()
	kills, seed := setting(t, "HOLDFAST_PREFIX_KILLS", prefixKills),
		uint64(setting(t, "HOLDFAST_PREFIX_SEED", int(time.Now().UnixNano()%1e6)))
	t.Logf("the seed is %d", seed)
	table := &prefixTable{rows: map[string]prompttest.Counts{}, kills: map[string]int{}}
	t.Run("kills", func(t *testing.T) {
		eachStore(t, func(t *testing.T, newStore func(*testing.T) string) {
			for i, f := range prompttest.Formats() {
				name := t.Name()[strings.LastIndex(t.Name(), "/")+1:]
				t.Run(string(f), func(t *testing.T) {
					t.Parallel()
					p := newPerson(t, newStore(t), f, string(f),
						rand.New(rand.NewPCG(seed, uint64(i)+uint64(len(name))<<8)))
					for threads := 0; p.killed < kills/8; threads++ {
						p.converse(fmt.Sprintf("%s-%d", f, threads), kills/8)
					}
					p.wantWhole()
					table.add(name, f, p)
				})
			}
		})
	})
	table.log(t)
}

// TestPrefixesCanFail: an agent that says the time where it changes the whole prompt is
// found out, by the provider and by the metric.
func TestPrefixesCanFail(t *testing.T) {
	t.Parallel()
	p := newPerson(t, newFile(t), prompttest.Anthropic, "clock", rand.New(rand.NewPCG(1, 2)))
	p.converse("clock-0", 1)
	c := p.provider.Counts()
	if c.Whole > 0 || c.Again == 0 || len(c.Fouls) == 0 {
		t.Errorf("%d of %d requests had all of the one before", c.Whole, c.Again)
	}
	if cuts := p.cuts(); cuts["instructions"] == 0 || cuts["none"] > 0 {
		t.Errorf("the metric says %v", cuts)
	}
}

// person talks to one agent on one thread after the other.
type person struct {
	*crew
	agent    string
	provider *prompttest.Provider
	random   *rand.Rand
	killed   int
	posted   int
}

func newPerson(t *testing.T, store string, f prompttest.Format, agent string, random *rand.Rand) *person {
	fake := &prompttest.Provider{Format: f, Pause: time.Millisecond}
	at := httptest.NewServer(fake)
	t.Cleanup(at.Close)
	c := newCrew(t, store, "--provider="+at.URL)
	return &person{crew: c.begin(), agent: agent, provider: fake, random: random}
}

// converse has one conversation, in which workers are killed up to the given number.
func (p *person) converse(thread string, kills int) {
	p.Helper()
	k := p.talk(p.agent, thread)
	said := func(id, plan string) map[string]any {
		return userMessage(id, fmt.Sprintf("(thread %s) <please> plan: %s;", thread, plan))
	}
	p.says(k, kills, map[string]any{"messages": []any{said("u1", "look look fail|delicate|look note")}})
	p.says(k, kills, map[string]any{"messages": []any{said("u2", "page look|look")}})
	// The page is loaded again: it sends all that it knows.
	var history struct{ Messages []json.RawMessage }
	getJSON(p.T, p.p.url+"/threads/"+thread+"/messages", &history)
	list := []any{}
	for _, m := range history.Messages {
		list = append(list, m)
	}
	p.says(k, kills, map[string]any{"messages": append(list, said("u3", "note delicate look|look"))})
}

// says posts something, and what is asked for until nothing is.
func (p *person) says(k *talk, kills int, in map[string]any) {
	p.Helper()
	for in != nil {
		end := p.posts(k, kills, in)
		if in = p.next(k, end); in == nil {
			k.wantEnd(end, "success")
		}
	}
}

// next returns what the end of a run asks for: the answers to its questions, or the results
// of the frontend's calls. It returns nil if it asks for nothing.
func (p *person) next(k *talk, end record) map[string]any {
	var resume []any
	for _, q := range interruptsOf(end) {
		resume = append(resume, map[string]any{
			"interruptId": q["id"], "status": "resolved",
			"payload": json.RawMessage(`{"approved": true, "editedArgs": { "text" : "<edited>", "n": 2.0 }}`),
		})
	}
	if len(resume) > 0 {
		return map[string]any{"messages": []any{}, "resume": resume}
	}
	outcome, _ := end.Data["outcome"].(map[string]any)
	pending, _ := outcome["pendingToolCallIds"].([]any)
	var results []any
	for i, id := range pending {
		results = append(results, map[string]any{
			"id":         fmt.Sprintf("%s-%d", id, i),
			"role":       "tool",
			"toolCallId": id,
			"content":    "the <page> is \u2028 shown",
		})
	}
	if len(results) == 0 {
		return nil
	}
	return map[string]any{"messages": results}
}

// posts posts a run input, with facts and a state that are different each time and tools in
// any order, to a worker that may be another than before, and kills it at a random moment.
func (p *person) posts(k *talk, kills int, in map[string]any) record {
	p.Helper()
	p.posted++
	if p.standby != nil && p.random.IntN(2) == 0 {
		p.p, p.standby = p.standby, p.p
	}
	tools := []any{
		map[string]any{
			"name":        "page",
			"description": "Shows <a page>.",
			"parameters":  json.RawMessage(`{ "type": "object", "properties": {"text": {"type": "string"}} }`),
		},
		map[string]any{"name": "alert", "description": "Warns.", "parameters": json.RawMessage(`{"type":"object"}`)},
	}
	p.random.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
	in["threadId"], in["runId"], in["protocolVersion"] = k.thread, fmt.Sprintf("r%d", p.posted), "1.0"
	said, _ := in["messages"].([]any)
	in["messages"] = append([]any{map[string]any{"id": fmt.Sprintf("s%d", p.posted), "role": "system",
		"content": "Speak <Danish>."}}, said...)
	in["tools"], in["state"] = tools, map[string]any{"posted": p.posted}
	in["context"] = []any{
		map[string]any{"description": "the time", "value": fmt.Sprintf("post %d at %d", p.posted, p.random.IntN(1e6))},
	}
	body := []byte(mustText(p.T, in))
	due := len(k.order) + 1 + p.random.IntN(60)
	k.watch = func() {
		if p.killed >= kills || due == 0 || len(k.order) < due {
			return
		}
		due = 0 // once for each post, so that no run is given up
		wait.Pass(time.Duration(p.random.IntN(int(killDelay))))
		p.killed++
		p.provider.Killed()
		p.kill(p.p.name)
	}
	for begun := time.Now(); time.Since(begun) < patience; {
		if end, over := k.exchange(body); over {
			return end
		}
	}
	p.Fatalf("%s: no end of %s\nworker: %s", k.thread, body, p.p.out)
	return record{}
}

// wantWhole checks that every request had all of the one before.
func (p *person) wantWhole() {
	p.Helper()
	c := p.provider.Counts()
	for _, foul := range c.Fouls {
		p.Error(foul)
	}
	if c.Whole != c.Again || c.Bytes != c.Repeated || c.Again < p.killed || p.killed > 10 && c.After < p.killed/2 {
		p.Errorf("%d of %d requests had all of the one before, %d of them after a kill", c.Whole, c.Again, c.After)
	}
	for cut, n := range p.cuts() {
		if cut != "none" && cut != "first" && n > 0 {
			p.Errorf("the metric says that %d requests were cut: %s", n, cut)
		}
	}
}

var cutMetric = regexp.MustCompile(`(?m)^holdfast_prompts_total\{cut="([a-z]+)",model="[^"]*",` +
	`provider="[^"]*"\} (\d+)$`)

// cuts are the requests of the worker that lives, by what cut them.
func (p *person) cuts() map[string]int {
	p.Helper()
	cuts := map[string]int{}
	for _, m := range cutMetric.FindAllStringSubmatch((&keepers{crew: p.crew}).metrics(), -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			p.Fatal(err)
		}
		cuts[m[1]] += n
	}
	if len(cuts) == 0 {
		p.Error("there is no such metric")
	}
	return cuts
}

// prefixTable is what came of all.
type prefixTable struct {
	mu    sync.Mutex
	rows  map[string]prompttest.Counts
	kills map[string]int
}

func (p *prefixTable) add(store string, f prompttest.Format, who *person) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := string(f) + " | " + store
	p.rows[name], p.kills[name] = who.provider.Counts(), who.killed
}

// log writes the table as docs/prompt-cache.md has it.
func (p *prefixTable) log(t *testing.T) {
	var b strings.Builder
	b.WriteString("\n| API | store | kills | requests | the first after a kill | with all of the one before | share " +
		"of its bytes |\n|---|---|---|---|---|---|---|\n")
	kills, sum := 0, prompttest.Counts{}
	row := func(name string, kills int, c prompttest.Counts) {
		share := 100.0
		if c.Repeated != c.Bytes {
			share *= float64(c.Repeated) / float64(c.Bytes)
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d of %d | %.2f %% |\n", name, kills, c.Requests, c.After, c.Whole,
			c.Again, share)
	}
	for _, f := range prompttest.Formats() {
		for _, store := range []string{"file", "redis"} {
			name := string(f) + " | " + store
			c := p.rows[name]
			row(name, p.kills[name], c)
			kills += p.kills[name]
			sum.Requests, sum.After, sum.Whole, sum.Again = sum.Requests+c.Requests, sum.After+c.After, sum.Whole+
				c.Whole, sum.Again+c.Again
			sum.Bytes, sum.Repeated = sum.Bytes+c.Bytes, sum.Repeated+c.Repeated
		}
	}
	row("all | ", kills, sum)
	t.Log(b.String())
}
