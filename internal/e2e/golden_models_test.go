package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/middleware"
)

// The traces that models leave in a golden store, and how threads with it go on. The models
// are played by a provider that lives as long as the test; the agents have its address from
// the environment.

// goldenModels are the threads in a golden store that have the model to which a run has
// fallen back, the mark of a prompt, what a history window has recorded, or what answers are
// besides text.
type goldenModels struct {
	Models []string
}

// modelThread is one of those threads, with an agent of the same name. It is left as it is
// when the server dies, and it is checked how it goes on. A thread that does not run then
// has the same messages later on.
type modelThread struct {
	leave   func(*modelTalk)
	check   func(*modelTalk)
	running bool
}

var modelThreads = map[string]modelThread{
	"chained": {leave: leaveChained, check: checkChained, running: true},
	"teller":  {leave: leaveTeller, check: checkTeller},
	"narrow":  {leave: leaveNarrow, check: checkNarrow},
	"reader":  {leave: leaveReader, check: checkReader},
	"careful": {leave: leaveCareful, check: checkCareful},
	"former":  {leave: leaveFormer, check: checkFormer, running: true},
	"formed":  {leave: leaveFormed, check: checkFormed},
	"painter": {leave: leavePainter, check: checkPainter},
}

// leaveModels makes the threads on a server that is killed soon after.
func (g *golden) leaveModels(t *testing.T, p *process, models *goldenProvider) {
	t.Helper()
	for name, thread := range modelThreads {
		thread.leave(&modelTalk{T: t, p: p, models: models, name: name})
		g.Models = append(g.Models, name)
		if !thread.running {
			var body json.RawMessage
			getJSON(t, p.url+"/threads/"+name+"/messages", &body)
			g.Messages[name] = body
		}
	}
	slices.Sort(g.Models)
}

func (g *goldenModels) checkModels(t *testing.T, p *process, models *goldenProvider) {
	t.Helper()
	for _, name := range g.Models {
		modelThreads[name].check(&modelTalk{T: t, p: p, models: models, name: name, runs: 100})
	}
}

// goldenProvider plays the models of a golden store that are not the demo's. They call what a
// person tells them to call.
type goldenProvider struct {
	url   string
	mu    sync.Mutex
	asked map[string][]string // the requests, by model
	holds atomic.Bool         // the model in a form does not finish
}

func newGoldenProvider(t *testing.T) *goldenProvider {
	t.Helper()
	g := &goldenProvider{asked: map[string][]string{}}
	s := httptest.NewServer(g)
	t.Cleanup(s.Close)
	g.url = s.URL
	return g
}

// start starts a server with the agents of a format, whose models are here.
func (g *goldenProvider) start(t *testing.T, store, format, journal string, args ...string) *process {
	t.Helper()
	addr := redistest.FreeAddr(t)
	all := slices.Concat([]string{"--addr", addr, "--store", store}, goldenArgs(format, journal), args)
	cmd := exec.Command(binary, all...)
	cmd.Env = append(os.Environ(), "GOLDEN_PROVIDER="+g.url)
	p := run(t, cmd)
	p.url = "http://" + addr
	return p.ready()
}

// requests returns what a model was asked.
func (g *goldenProvider) requests(model string) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.asked[model])
}

// The inputs and answers of the models.
const (
	goldenNarrow  = 2000 // bytes of a request
	goldenSummary = "They greeted each other."
)

// ServeHTTP answers as OpenAI's chat completions API does.
func (g *goldenProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Model    string
		Messages []struct {
			Role    string
			Content any
		}
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	g.mu.Lock()
	g.asked[req.Model] = append(g.asked[req.Model], string(body))
	g.mu.Unlock()
	said, results := "", 0
	for _, m := range req.Messages {
		switch m.Role {
		case "user":
			said, _ = m.Content.(string)
		case "tool":
			said, results = "", results+1
		}
	}
	name, arguments, call := strings.Cut(strings.TrimPrefix(said, "call "), " ")
	switch {
	case req.Model == "fails":
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":{"message":"no such key","code":"invalid_api_key"}}`)
	case req.Model == "narrow" && len(body) > goldenNarrow:
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":{"message":"too much","code":"context_length_exceeded"}}`)
	case req.Model == "former":
		g.form(w, r, string(body))
	case req.Model == "formed":
		fmt.Fprint(w, chatDelta(fmt.Sprintf(`{"content":%q}`, goldenResult)), chatStop("stop"))
	case req.Model == "painter":
		paint(w)
	case req.Messages[0].Content == "Summarise it.":
		fmt.Fprint(w, chatDelta(fmt.Sprintf(`{"content":%q}`, goldenSummary)), chatStop("stop"))
	case call && strings.HasPrefix(said, "call "):
		fmt.Fprint(w, chatDelta(fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call_%d",`+
			`"function":{"name":%q,"arguments":%q}}]}`, results, name, arguments)), chatStop("tool_calls"))
	default:
		fmt.Fprint(w, chatDelta(`{"content":"Very well."}`), chatStop("stop"))
	}
}

func chatStop(reason string) string {
	return fmt.Sprintf("data: {\"choices\":[{\"delta\":{},\"finish_reason\":%q}]}\n\n", reason) + chatEnd
}

// modelTalk talks to an agent on the thread of its name.
type modelTalk struct {
	*testing.T
	p      *process
	models *goldenProvider
	name   string
	runs   int
}

// posts posts messages, and returns the last record that was read.
func (m *modelTalk) posts(more map[string]any, stop func(record) bool, messages ...map[string]any) (last record) {
	m.Helper()
	m.runs++
	in := map[string]any{
		"threadId":        m.name,
		"runId":           fmt.Sprint("r", m.runs),
		"protocolVersion": "1.0",
		"messages":        append([]map[string]any{}, messages...),
	}
	for name, value := range more {
		in[name] = value
	}
	res, err := postTo(m.Context(), m.p.url, m.name, []byte(mustText(m.T, in)))
	if err != nil {
		m.Fatal(err)
	}
	defer res.Body.Close()
	if err := readStream(res.Body, func(r record) bool { last = r; return stop != nil && stop(r) }); err != nil {
		m.Fatal(err)
	}
	return last
}

// says has a person say something, which is answered.
func (m *modelTalk) says(text string) {
	m.Helper()
	m.wantAnswer(m.posts(nil, nil, userMessage(fmt.Sprint("u", m.runs), text)))
}

func (m *modelTalk) wantAnswer(end record) {
	m.Helper()
	if end.kind() != "RUN_FINISHED" || !strings.Contains(end.Raw, "success") {
		m.Fatalf("a run of %s ended with %s", m.name, end.Raw)
	}
}

// activities counts what is recorded in the history.
func (m *modelTalk) activities(kind string) (n int) {
	m.Helper()
	var body struct {
		Messages []struct{ Role, ActivityType string }
	}
	getJSON(m.T, m.p.url+"/threads/"+m.name+"/messages", &body)
	for _, message := range body.Messages {
		if message.Role == "activity" && message.ActivityType == kind {
			n++
		}
	}
	return n
}

// wantOne checks that the model is asked once while something is done, and returns the
// request.
func (m *modelTalk) wantOne(do func()) string {
	m.Helper()
	before := len(m.models.requests(m.name))
	do()
	asked := m.models.requests(m.name)[before:]
	if len(asked) == 0 {
		m.Fatalf("the model of %s was not asked", m.name)
	}
	if len(asked) > 1 {
		m.Errorf("the model of %s was asked %d times, want once:\n%s", m.name, len(asked), strings.Join(asked, "\n"))
	}
	return asked[0]
}

// until says something until that is recorded.
func (m *modelTalk) until(kind, text string) {
	m.Helper()
	for m.activities(kind) == 0 {
		if m.runs == 20 {
			m.Fatalf("%s has recorded no %s", m.name, kind)
		}
		m.says(text)
	}
}

// leaveChained has a run that has fallen back to the second model, in its middle.
func leaveChained(m *modelTalk) {
	m.posts(nil, func(r record) bool { return r.kind() == "TOOL_CALL_RESULT" }, userMessage("u0", "plan 20 steps"))
	if asked := m.models.requests("fails"); len(asked) != 1 {
		m.Fatalf("the first model was asked %d times before the fallback, want once", len(asked))
	}
}

// checkChained: the run goes on with the second model, and the next begins with the first.
func checkChained(m *modelTalk) {
	m.wantAnswer((&watcher{killer: &killer{T: m.T, p: m.p}, thread: m.name, run: "r1"}).follow())
	if asked := m.models.requests("fails"); len(asked) != 0 {
		m.Errorf("the run that had fallen back asked the first model %d times", len(asked))
	}
	m.says("time")
	if asked := m.models.requests("fails"); len(asked) != 1 {
		m.Errorf("the next run asked the first model %d times, want once", len(asked))
	}
}

func leaveTeller(m *modelTalk) { m.until(middleware.ActivitySummary, "hello") }

// checkTeller: the next turn is answered with the summary, which is not made again.
func checkTeller(m *modelTalk) {
	if asked := m.wantOne(func() { m.says("hello again") }); !strings.Contains(asked, goldenSummary) {
		m.Errorf("the model was not shown the summary: %s", asked)
	}
	if n := m.activities(middleware.ActivitySummary); n != 1 {
		m.Errorf("there are %d summaries, want one", n)
	}
}

func leaveNarrow(m *modelTalk) { m.until(middleware.ActivityCut, strings.Repeat("word ", 100)) }

// checkNarrow: what the model has refused is not sent again.
func checkNarrow(m *modelTalk) {
	if asked := m.wantOne(func() { m.says("hello again") }); len(asked) > goldenNarrow {
		m.Errorf("the model was asked with %d bytes", len(asked))
	}
	if n := m.activities(middleware.ActivityCut); n != 1 {
		m.Errorf("there are %d cuts, want one", n)
	}
}

// needle stands in the middle of a large result.
const needle = "the needle"

// leaveReader has a large result of a tool of the frontend.
func leaveReader(m *modelTalk) {
	tools := map[string]any{
		"tools": []any{
			map[string]any{"name": "fetch", "description": "Fetches.", "parameters": map[string]any{"type": "object"}},
		},
	}
	end := m.posts(tools, nil, userMessage("u0", "call fetch {}"))
	if !strings.Contains(end.Raw, `"pendingToolCallIds":["call_0"]`) {
		m.Fatalf("the frontend is not asked: %s", end.Raw)
	}
	hay := strings.Repeat("straw ", 120)
	m.wantAnswer(m.posts(tools, nil, map[string]any{"id": "t0", "role": "tool", "toolCallId": "call_0",
		"content": hay + needle + " " + hay}))
	m.wantPart()
}

// checkReader: the model is shown a part of the result, as before, and reads the rest.
func checkReader(m *modelTalk) {
	m.says(`call read_result {"call":"call_0","pattern":"the n[e]+dle"}`)
	asked := m.wantPart()
	if _, found, ok := strings.Cut(asked, `"call_1"`); !ok || !strings.Contains(found, needle) {
		m.Errorf("the rest of the result could not be read: %s", asked)
	}
}

// wantPart checks that the model was last shown a part of the result, and returns what it
// was shown.
func (m *modelTalk) wantPart() string {
	m.Helper()
	all := m.models.requests(m.name)
	asked := all[len(all)-1]
	before, after, ok := strings.Cut(asked, "[The middle of this result is left out")
	result, _, _ := strings.Cut(after, `"role"`)
	if !ok || strings.Contains(before+result, needle) {
		m.Errorf("the model was shown %s", asked)
	}
	return asked
}

// instructed is a message with the instructions of the client.
func instructed(language string) map[string]any {
	return map[string]any{"id": "s-" + language, "role": "system", "content": "Speak " + language + "."}
}

// leaveCareful waits for an approval. The client's instructions have changed once.
func leaveCareful(m *modelTalk) {
	m.wantAnswer(m.posts(nil, nil, instructed("Danish"), userMessage("u0", "hello")))
	end := m.posts(nil, nil, instructed("Dutch"), userMessage("u1", `call charge_card {"amount":5,"currency":"EUR"}`))
	if len(interruptsOf(end)) != 1 {
		m.Fatalf("nobody is asked: %s", end.Raw)
	}
}

// checkCareful: the approved call is made, and the next request begins with all of the one
// before, whatever the client's instructions are now.
func checkCareful(m *modelTalk) {
	var info struct {
		Interrupts []map[string]any `json:"interrupts"`
	}
	getJSON(m.T, m.p.url+"/threads/"+m.name, &info)
	if len(info.Interrupts) != 1 {
		m.Fatalf("%s asks %v", m.name, info.Interrupts)
	}
	resume := []any{
		map[string]any{
			"interruptId": info.Interrupts[0]["id"],
			"status":      "resolved",
			"payload":     map[string]any{"approved": true},
		},
	}
	asked := m.wantOne(func() {
		m.wantAnswer(m.posts(map[string]any{"resume": resume}, nil, instructed("Finnish")))
	})
	if result, tail := strings.Index(asked, "Charged 5.00 EUR"), strings.Index(asked, "Speak Finnish."); result < 0 ||
		tail < result {
		m.Errorf("the model was asked %s", asked)
	}
	var counted []string
	for line := range strings.Lines(bodyOf(m.T, m.p.url+"/metrics")) {
		if strings.HasPrefix(line, "holdfast_prompts_total{") && strings.Contains(line, `model="careful"`) &&
			!strings.HasSuffix(line, " 0\n") {
			counted = append(counted, line)
		}
	}
	if want := []string{
		"holdfast_prompts_total{cut=\"none\",model=\"careful\",provider=\"openai\"} 1\n",
	}; !slices.Equal(counted, want) {
		m.Errorf("the metric says %q, want %q", counted, want)
	}
}
