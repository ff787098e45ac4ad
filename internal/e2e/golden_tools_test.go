package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// The traces that tools leave in a golden store before their calls end: a value that a call
// has kept, the handle of an MCP task, a question of a login or of a doubt, and calls that
// were handed out. Their agents are in Go, so workers write and check these stores, which have
// files of their own.

// goldenTools is what such a store held when it was written.
type goldenTools struct {
	Tokens   map[string]string         // of the URLs of calls, by thread
	Finished map[string]any            // the answer to a result
	Asked    map[string]map[string]any // the open question, by thread
}

// goldenTrace is the trace of the run that waits for a task.
const (
	goldenTrace  = "0af7651916cd43dd8448eb211c80319c"
	goldenParent = "00-" + goldenTrace + "-b7ad6b7169203331-01"
)

// TestGoldenTools: what tools have left in a store is gone on with.
func TestGoldenTools(t *testing.T) {
	t.Parallel()
	if *writeGolden {
		writeGoldenTools(t, goldenFormats[len(goldenFormats)-1])
	}
	for _, format := range goldenFormats {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			eachStore(t, func(t *testing.T, newStore func(*testing.T) string) {
				var want goldenTools
				text, err := os.ReadFile(goldenFile(format, "tools.json"))
				if err == nil {
					err = json.Unmarshal(text, &want)
				}
				if err != nil {
					t.Fatal(err)
				}
				s := newTaskServer(t)
				s.done.Store(true)
				k := s.crew(replayed(t, newStore(t), goldenFile(format, "tools.gz")))
				k.file("let-in")
				k.begin()
				want.check(k, s)
			})
		})
	}
}

// writeGoldenTools writes what a store holds as commits.
func writeGoldenTools(t *testing.T, format string) {
	t.Helper()
	s := newTaskServer(t)
	k := s.crew(newFile(t)).begin()
	want := goldenTools{Tokens: map[string]string{}, Asked: map[string]map[string]any{}}
	for _, name := range []string{"lose", "enter", "ask"} {
		end := k.talk("holder", name).says(name + " {}")
		open := interruptsOf(end)
		if len(open) != 1 {
			t.Fatalf("%s ended with %s", name, end.Raw)
		}
		want.Asked[name] = open[0]
	}
	for name, tool := range map[string]string{"forever": "forever", "finished": "forever"} {
		k.handsOut(want.Tokens, name, tool)
	}
	code, answer := sendResult(t, k.p.url+"/calls?token="+url.QueryEscape(want.Tokens["finished"]), `{"result":true}`)
	if code != http.StatusOK {
		t.Fatalf("the result: %d %v", code, answer)
	}
	want.Finished = answer
	k.awaitMessage("finished", "I read: true")
	k.leave("holder", "kept", "hold {}")
	k.awaitLines("holds thread=kept", 1)
	k.leave("remote", "task", "srv_work {}")
	s.await("tasks/get")
	k.handsOut(want.Tokens, "brief", "brief") // the last one, since a worker would notice that its time is up
	db := k.stop()
	wait.Pass(2 * time.Second) // now it is
	readDump(t, db, nil).write(t, goldenFile(format, "tools.gz"))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(goldenFile(format, "tools.json"), []byte(mustText(t, want)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// handsOut has a call of a thread handed out, and notes its token.
func (c *crew) handsOut(tokens map[string]string, name, tool string) {
	c.Helper()
	k := c.talk("holder", name)
	k.wantEnd(k.says(tool+" {}"), "success")
	lines := c.lines("delivered thread=" + name + " ")
	if len(lines) != 1 {
		c.Fatalf("%s was handed out %d times", name, len(lines))
	}
	to, err := url.Parse(fields(lines[0])["url"])
	if err != nil {
		c.Fatal(err)
	}
	tokens[name] = to.Query().Get("token")
}

// leave begins a run, and does not wait for it.
func (c *crew) leave(agent, name, text string) {
	c.Helper()
	body := mustText(c.T, map[string]any{
		"threadId":        name,
		"runId":           "r1",
		"protocolVersion": "1.0",
		"messages":        []any{userMessage("u1", text)},
	})
	req, err := http.NewRequestWithContext(c.Context(), http.MethodPost, c.p.url+"/agents/"+agent+"/runs",
		strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Traceparent", goldenParent)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.Fatal(err)
	}
	defer res.Body.Close()
	if err := readStream(res.Body, func(record) bool { return true }); err != nil {
		c.Fatal(err)
	}
}

// awaitMessage waits until a thread has a message that says so.
func (c *crew) awaitMessage(name, text string) {
	c.Helper()
	var body json.RawMessage
	wait.For(c.T, func() error {
		if getJSON(c.T, c.p.url+"/threads/"+name+"/messages", &body); strings.Contains(string(body), text) {
			return nil
		}
		return fmt.Errorf("%s does not say %q: %s\nworker: %s", name, text, body, c.p.out)
	})
}

// check goes on with every thread.
func (g *goldenTools) check(k *crew, s *taskServer) {
	k.Helper()
	k.awaitMessage("kept", `I read: It went on with {\"handle\":9007199254740993}`)
	k.awaitMessage("task", "I read: the task is done")
	if n := s.count("tools/call"); n != 0 || !strings.Contains(s.last("tasks/get"), goldenTrace) {
		k.Errorf("the task's tool was called %d times; asked about with %s", n, s.last("tasks/get"))
	}
	send := func(name, result string) (int, map[string]any) {
		k.Helper()
		return sendResult(k.T, k.p.url+"/calls?token="+url.QueryEscape(g.Tokens[name]), result)
	}
	if code, answer := send("forever", `{"result":true}`); code != http.StatusOK {
		k.Errorf("the result: %d %v", code, answer)
	}
	k.awaitMessage("forever", "I read: true")
	if code, answer := send("finished", `{"result":true}`); code != http.StatusOK ||
		mustText(k.T, answer) != mustText(k.T, g.Finished) {
		k.Errorf("the same result again: %d %v, first %v", code, answer, g.Finished)
	}
	if code, answer := send("brief", `{"result":true}`); code != http.StatusConflict ||
		answer["code"] != codes.CallExpired {
		k.Errorf("the late result: %d %v", code, answer)
	}
	k.awaitMessage("brief", "I read: "+thread.TextExpired)
	for name, c := range map[string]struct {
		answer map[string]any
		read   string
	}{
		"lose": {map[string]any{"status": "resolved", "payload": map[string]string{"outcome": "happened"}},
			loop.TextHappened},
		"enter": {map[string]any{"status": "resolved", "payload": map[string]bool{"continue": true}}, "You are in."},
		"ask":   {map[string]any{"status": "cancelled"}, `Declined: true, after \"what was asked\"`},
	} {
		var info struct {
			Interrupts []map[string]any `json:"interrupts"`
		}
		getJSON(k.T, k.p.url+"/threads/"+name, &info)
		if len(info.Interrupts) != 1 || info.Interrupts[0]["id"] != g.Asked[name]["id"] ||
			info.Interrupts[0]["message"] != g.Asked[name]["message"] {
			k.Errorf("%s asks %v, want %v", name, info.Interrupts, g.Asked[name])
		}
		c.answer["interruptId"] = g.Asked[name]["id"]
		talk := k.talk("holder", name)
		talk.runs = 10
		talk.wantEnd(talk.posts("resume", []any{c.answer}), "success")
		k.awaitMessage(name, "I read: "+c.read)
	}
	if did := append(k.lines("holds "), k.lines("lost ")...); len(did) > 0 {
		k.Errorf("calls were made again: %q", did)
	}
}

// taskServer is an MCP server of the revision 2026-07-28 whose tool becomes a task.
type taskServer struct {
	*testing.T
	url  string
	done atomic.Bool // the task is
	mu   sync.Mutex
	got  []string // each "method params"
}

func newTaskServer(t *testing.T) *taskServer {
	s := &taskServer{T: t}
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	s.url = web.URL
	return s
}

// crew returns workers that use the server.
func (s *taskServer) crew(store string) *crew {
	return newCrew(s.T, store, "--mcp="+
		mustText(s.T, map[string]any{"name": "srv", "url": s.url, "allow": []string{"127.0.0.1"}}))
}

// ServeHTTP implements [http.Handler].
func (s *taskServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	s.mu.Lock()
	s.got = append(s.got, m.Method+" "+string(m.Params))
	s.mu.Unlock()
	const task = `"taskId":"t1","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z",` +
		`"ttlMs":null,"pollIntervalMs":1`
	result := `{"resultType":"complete"}`
	switch m.Method {
	case "server/discover":
		result = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,` +
			`"cacheScope":"private"}`
	case "tools/list":
		result = `{"resultType":"complete","tools":[{"name":"work","inputSchema":{"type":"object"}}],"ttlMs":0,` +
			`"cacheScope":"private"}`
	case "tools/call":
		result = `{"resultType":"task","status":"working",` + task + `}`
	case "tasks/get":
		result = `{"resultType":"complete","status":"working",` + task + `}`
		if s.done.Load() {
			result = `{"resultType":"complete","status":"completed","result":{"content":[{"type":"text",` +
				`"text":"the task is done"}]},` +
				task +
				`}`
		}
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// all returns the params of the requests of a method.
func (s *taskServer) all(method string) (params []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.got {
		if rest, ok := strings.CutPrefix(line, method+" "); ok {
			params = append(params, rest)
		}
	}
	return params
}

func (s *taskServer) count(method string) int { return len(s.all(method)) }

func (s *taskServer) last(method string) string {
	all := slices.Clone(s.all(method))
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// await waits for a request of a method.
func (s *taskServer) await(method string) {
	s.Helper()
	wait.Until(s.T, "a request of "+method, func() bool { return s.count(method) > 0 })
}
