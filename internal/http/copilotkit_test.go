package http

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/http/agentcard"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares what went over the wire with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "copilotkit", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:\n%s\nwant:\n%s", name, got, want)
	}
}

// oneAgent has the tools and members that /info shows.
type oneAgent struct{}

func (oneAgent) Agents() []agentcard.Info {
	return []agentcard.Info{
		{
			Name:          "helper",
			Description:   "helps",
			Tools:         []holdfast.ToolSpec{{Name: "clock", Description: "the time"}},
			ParallelTools: 2,
			MaxIterations: 10,
			Persistent:    true,
		},
	}
}

// chatting is an engine with a conversation.
func chatting(t *testing.T) *fake {
	t.Helper()
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	f := &fake{
		info: &threads.Info{
			ID:        "t",
			Title:     "hi",
			CreatedAt: at,
			UpdatedAt: at.Add(time.Minute),
			Agent:     "helper",
			Status:    threads.StatusRunning,
			Run:       "r2",
		},
		messages: []string{
			`{"id":"m","role":"user","content":"hi"}`,
			`{"id":"a","role":"assistant","content":"<so>","toolCalls":[{"id":"c","type":"function",` +
				`"function":{"name":"clock","arguments":"{}"}}]}`,
			`{"id":"r","role":"tool","toolCallId":"c","content":"noon"}`,
		},
		attached: []any{
			[]agui.Frame{
				{Data: agui.Append(nil, agui.RunStarted{ThreadID: "t", RunID: "r2"})},
				{ID: "2-x", Data: agui.Append(nil, agui.RunFinished{ThreadID: "t", RunID: "r2"})},
			},
		},
	}
	f.post = func(_ context.Context, _ holdfast.Principal, agent string, in *agui.RunAgentInput) (*agui.Reply, error) {
		if agent != "helper" || !in.Chat || in.ThreadID != "t" {
			t.Errorf("agent %q, chat %v, %+v", agent, in.Chat, in)
		}
		return reply([]agui.Frame{{ID: "1-x",
			Data: agui.Append(nil, agui.RunStarted{ThreadID: "t", RunID: in.RunID})}}), nil
	}
	f.events = func(_ store.Cursor, d agui.Dialect) (*agui.Reply, error) {
		if d != agui.DialectLegacy {
			t.Errorf("the dialect is %v", d)
		}
		return reply([]agui.Frame{
			{ID: "1-x", Data: []byte(`{"type":"RUN_STARTED"}`)},
			{ID: "2-x", Pieces: inPieces(`{"type":`, `"RUN_FINISHED"}`)},
		}), nil
	}
	return f
}

func inPieces(pieces ...string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, p := range pieces {
			if !yield([]byte(p), nil) {
				return
			}
		}
	}
}

// TestCopilotKitOnTheWire: each route's answer, byte by byte. The envelope answers what the
// route does that it stands for.
func TestCopilotKitOnTheWire(t *testing.T) {
	f := chatting(t)
	s := serve(t, f, func(c *Config) { c.Agents, c.Version = oneAgent{}, "1.2.3" })
	for _, c := range []struct{ file, method, path, body string }{
		{"info.json", "GET", "/info", ""},
		{"info-envelope.json", "POST", "", `{"method":"info"}`},
		{"run.sse", "POST", "/agent/helper/run", minimal},
		{"run.sse", "POST", "/agent/default/run", minimal},
		{"run.sse", "POST", "", `{"method":"agent/run","params":{"agentId":"default"},"body":` + minimal + `}`},
		{"run.sse", "POST", "/agent/default/suggest", minimal},
		{"connect.sse", "POST", "/agent/default/connect", `{"threadId":"t","runId":"mine","messages":[]}`},
		{"connect.sse", "POST", "", `{"method":"agent/connect","params":{"agentId":"default"},"body":{"threadId":"t",` +
			`"runId":"mine","messages":[]}}`},
		{"stop.json", "POST", "/agent/default/stop/t", ""},
		{"stop.json", "POST", "/agent/default/stop/t", `{"runId":"r2"}`},
		{"stop.json", "POST", "", `{"method":"agent/stop","params":{"agentId":"default","threadId":"t"}` +
			`,"body":{"runId":"r2"}}`},
		{"threads.json", "GET", "/threads?agentId=default", ""},
		{"messages.json", "GET", "/threads/t/messages", ""},
		{"events.json", "GET", "/threads/t/events", ""},
		{"state.json", "GET", "/threads/t/state", ""},
		{"patch.json", "PATCH", "/threads/t", `{"agentId":"default","name":"mine"}`},
		{"archive.json", "POST", "/threads/t/archive", `{"agentId":"default"}`},
		{"delete.json", "DELETE", "/threads/t", `{"agentId":"default"}`},
	} {
		res, body := do(t, c.method, s.URL+"/copilotkit"+c.path, c.body, "Content-Type", typeJSON)
		if res.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %d %s", c.method, c.path, res.StatusCode, body)
		}
		golden(t, c.file, body)
	}
}

// TestConnectOnlyLooks: a page that opens a thread starts nothing, whatever the thread does,
// and a thread that does not exist yet is no error.
func TestConnectOnlyLooks(t *testing.T) {
	f := chatting(t)
	f.post = func(context.Context, holdfast.Principal, string, *agui.RunAgentInput) (*agui.Reply, error) {
		t.Error("connecting has posted a run")
		return nil, nil
	}
	f.err = holdfast.Errorf(codes.NotFound, "There is no thread.")
	s := serve(t, f, func(c *Config) { c.Agents = oneAgent{} })
	res, body := do(t, "POST", s.URL+"/copilotkit/agent/default/connect",
		`{"threadId":"new","runId":"mine","messages":[]}`, "Content-Type", typeJSON)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	golden(t, "connect-unknown.sse", body)
	var sequence agui.Sequencer
	for _, frame := range parseSSE([]byte(body)) {
		ev, err := agui.DecodeEvent(frame.Data)
		if err == nil {
			_, err = sequence.Next(ev)
		}
		if err != nil {
			t.Errorf("%s: %v", frame.Data, err)
		}
	}
	f.err = holdfast.Errorf(codes.StoreUnavailable, "Later.")
	if res, body := do(t, "POST", s.URL+"/copilotkit/agent/default/connect", minimal, "Content-Type",
		typeJSON); res.StatusCode != 503 {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

// stopping is an engine with runs, which records what it is told to cancel.
type stopping struct {
	*fake
	runs      []threads.Run
	cancelled string
}

func (f *stopping) Runs(context.Context, holdfast.Principal, string, string, int) ([]threads.Run, error) {
	return f.runs, nil
}

func (f *stopping) Cancel(_ context.Context, _ holdfast.Principal, _, run string) (*threads.Info, error) {
	f.cancelled = run
	return f.info, nil
}

// TestStopNamesARun: a stop reaches the run that goes on, whatever id the page knows it by,
// but never one that has nothing to do with the run it names.
func TestStopNamesARun(t *testing.T) {
	for name, c := range map[string]struct {
		status    threads.Status
		run, want string
	}{
		"whichever runs":                       {threads.StatusRunning, "", "r4"},
		"the current one":                      {threads.StatusRunning, "r4", "r4"},
		"the one that asked":                   {threads.StatusRunning, "r3", "r4"},
		"the one that asked before":            {threads.StatusRunning, "r2", "r4"},
		"one that has ended":                   {threads.StatusRunning, "r1", ""},
		"the page's own id, which is not kept": {threads.StatusRunning, "page", "r4"},
		"nothing runs":                         {threads.StatusIdle, "", ""},
		"it has ended":                         {threads.StatusInterrupted, "r4", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := &stopping{fake: &fake{info: &threads.Info{ID: "t", Status: c.status, Run: "r4"}}, runs: []threads.Run{
				{ID: "r4", Continues: "r3"}, {ID: "r3", Continues: "r2"}, {ID: "r2"}, {ID: "r1"},
			}}
			s := serve(t, f.fake, func(cfg *Config) { cfg.Cancel, cfg.Threads = f.Cancel, f })
			res, body := do(t, "POST", s.URL+"/copilotkit/agent/a/stop/t", `{"runId":"`+c.run+`"}`, "Content-Type",
				typeJSON)
			var got copilotKitStopped
			if err := json.Unmarshal([]byte(body), &got); err != nil || res.StatusCode != 200 {
				t.Fatalf("%d %s", res.StatusCode, body)
			}
			if f.cancelled != c.want || got.Stopped != (c.want != "") || got.Stopped == (got.Message != "") {
				t.Errorf("cancelled %q: %s", f.cancelled, body)
			}
		})
	}
}

// paging is an engine with many threads, the most recently active first.
type paging struct {
	*fake
	all []threads.Info
}

func (f *paging) Threads(_ context.Context, _ holdfast.Principal, before time.Time, limit int) ([]threads.Info, error) {
	var page []threads.Info
	for _, info := range f.all {
		if (before.IsZero() || info.UpdatedAt.Before(before)) && len(page) < limit {
			page = append(page, info)
		}
	}
	return page, nil
}

// TestCopilotKitThreads: hidden threads and those of other agents are left out, and no
// thread is lost between pages.
func TestCopilotKitThreads(t *testing.T) {
	f := &paging{fake: &fake{}}
	add := func(id, agent string, hidden bool) {
		f.all = append(f.all, threads.Info{ID: id, Agent: agent, Hidden: hidden,
			UpdatedAt: time.Unix(int64(1000-len(f.all)), 0).UTC()})
	}
	add("t1", "helper", false)
	add("t2", "other", false)
	add("t3", "helper", true)
	add("t4", "helper", false)
	add("t5", "helper", false)
	s := serve(t, f.fake, func(c *Config) { c.Threads, c.Agents = f, twoAgents })
	for query, want := range map[string]string{
		"agentId=helper":                      "t1 t4 t5",
		"agentId=helper&includeArchived=true": "t1 t3 t4 t5",
		"":                                    "t1 t2 t4 t5",
	} {
		var got []string
		for cursor := ""; ; {
			_, body := do(t, "GET", s.URL+"/copilotkit/threads?limit=2&cursor="+cursor+"&"+query, "")
			var page copilotKitThreadList
			if err := json.Unmarshal([]byte(body), &page); err != nil || len(page.Threads) > 2 {
				t.Fatalf("%v %s", err, body)
			}
			for _, thread := range page.Threads {
				got = append(got, thread.ID)
			}
			if page.NextCursor == nil {
				break
			}
			cursor = *page.NextCursor
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %s", query, got, want)
		}
	}
}

// TestCopilotKitRefuses what could be misread, and what is not the caller's.
func TestCopilotKitRefuses(t *testing.T) {
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "", `{"method":"memories/list"}`, 400},
		{"POST", "", `{"method":"info","method":"agent/run"}`, 400},
		{"POST", "", `{"Method":"info"}`, 400},
		{"POST", "", `{"method":"agent/run","params":{"agentId":"default"}}`, 400},
		{"POST", "", `{"method":"agent/stop","params":{"agentId":"default","threadId":"t"},"body":{"run":"r"}}`, 400},
		{"POST", "", `[]`, 400},
		{"POST", "", `{"method":"info","params":"default"}`, 400},
		{"POST", "", `null`, 400},
		{"POST", "", `{"method":"info","body":"` + strings.Repeat("x", 1<<10) + `"}`, 413},
		{"POST", "/agent/nobody/run", minimal, 404},
		{"POST", "/agent/nobody/connect", minimal, 404},
		{"POST", "/agent/nobody/stop/t", `{}`, 404},
		{"POST", "/agent/default/run", `{"threadId":"t","threadId":"u","messages":[]}`, 400},
		{"POST", "/agent/default/connect", `{"threadid":"t","messages":[]}`, 400},
		{"POST", "/agent/default/stop/t", `{"runId":7}`, 400},
		{"GET", "/threads?limit=1000", "", 400},
		{"GET", "/threads?cursor=x", "", 400},
		{"GET", "/threads?agentId=nobody", "", 404},
		{"GET", "/info", "{}", 400},
		{"PATCH", "/threads/t", `{"title":"x"}`, 400},
		{"PATCH", "/threads/t", `{"name":"` + strings.Repeat("x", 257) + `"}`, 400},
		{"PATCH", "/threads/t", `{"name":"a\nb"}`, 400},
		{"DELETE", "/threads/t", `{"children":"delete"}`, 400},
	} {
		s := serve(t, chatting(t), func(c *Config) { c.Agents = oneAgent{} })
		if res, body := do(t, c.method, s.URL+"/copilotkit"+c.path, c.body, "Content-Type",
			typeJSON); res.StatusCode != c.want {
			t.Errorf("%s %s %.80s: %d %s", c.method, c.path, c.body, res.StatusCode, body)
		}
	}
	for _, body := range []string{"[]", "", "null", "7"} {
		_, said := do(t, "POST", serve(t, chatting(t), nil).URL+"/copilotkit", body, "Content-Type", typeJSON)
		if !strings.Contains(string(said), `"message":"The body is not a JSON object."`) {
			t.Errorf("%q: %s", body, said)
		}
	}
	locked := func(c *Config) {
		c.Authenticate = func(*http.Request) (holdfast.Principal, error) {
			return holdfast.Principal{}, holdfast.Errorf(codes.Unauthenticated, "Who are you?")
		}
	}
	s := serve(t, chatting(t), locked)
	for _, route := range slices.Concat((&copilotKit{}).routes(), (&copilotKitThreads{}).routes()) {
		path := strings.NewReplacer("{thread}", "t", "{agent}", "default").Replace(route.path)
		if res, _ := do(t, route.method, s.URL+path, "", "Content-Type",
			typeJSON); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s %s without a key: %d", route.method, path, res.StatusCode)
		}
	}
}

// TestApplicationHeaders: a page may send the headers that its application sets, and none
// that a proxy would.
func TestApplicationHeaders(t *testing.T) {
	s := serve(t, &fake{}, nil)
	for asked, want := range map[string]string{
		"":                                   "",
		"content-type,x-tenant":              ", x-tenant",
		"X-CopilotKit-Key, x-b_2":            ", x-copilotkit-key, x-b_2",
		"cookie, x-forwarded-for":            "",
		"x-a\tb, x-ü, x-a:b, x-":             ", x-",
		"x-forwarded-host,x-real,proxy-auth": ", x-real",
	} {
		res, _ := do(t, "OPTIONS", s.URL+"/copilotkit/threads/t", "", "Origin", "http://localhost:3000",
			"Access-Control-Request-Method", "DELETE", "Access-Control-Request-Headers", asked)
		if got := res.Header.Get("Access-Control-Allow-Headers"); res.StatusCode != 204 ||
			!strings.HasSuffix(got, ", Traceparent"+want) {
			t.Errorf("%q: %d %q", asked, res.StatusCode, got)
		}
	}
}

// fullStreams allows no stream.
type fullStreams struct{}

func (fullStreams) OpenStream(holdfast.Principal) (func(), error) {
	return nil, holdfast.Errorf(codes.LimitExceeded, "Too many streams.")
}

func (fullStreams) HoldBytes(holdfast.Principal, int64) (func(), error) { return func() {}, nil }

// TestEventsOfAPrunedRun: of a run whose log is not kept there are no events, and the snapshots
// that a watcher gets in its place are not taken for some.
func TestEventsOfAPrunedRun(t *testing.T) {
	f := chatting(t)
	f.events = func(store.Cursor, agui.Dialect) (*agui.Reply, error) {
		return reply([]agui.Frame{{Data: []byte(`{"type":"RUN_STARTED"}`)},
			{Data: []byte(`{"type":"RUN_FINISHED"}`)}}), nil
	}
	s := serve(t, f, func(c *Config) { c.Agents = oneAgent{} })
	if res, body := do(t, "GET", s.URL+"/copilotkit/threads/t/events", ""); res.StatusCode != http.StatusOK ||
		body != `{"events":[]}`+"\n" {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

// goneWriter is the connection of a client that does not read.
type goneWriter struct{ *httptest.ResponseRecorder }

func (goneWriter) Write([]byte) (int, error) { return 0, errors.New("i/o timeout") }

// TestEventsThatFail: events that cannot be read from the beginning are an error like any
// other, and they count as a stream. A client that does not read is no news.
func TestEventsThatFail(t *testing.T) {
	var log bytes.Buffer
	for name, c := range map[string]struct {
		broken  error
		streams Streams
		want    string
	}{
		"the first read fails": {holdfast.Errorf(codes.StoreUnavailable, "Away."), unlimited{},
			codes.StoreUnavailable},
		"there are many streams": {nil, fullStreams{}, codes.LimitExceeded},
	} {
		f := chatting(t)
		f.events = func(store.Cursor, agui.Dialect) (*agui.Reply, error) { return reply(c.broken), nil }
		s := serve(t, f, func(cfg *Config) { cfg.Agents, cfg.Streams = oneAgent{}, c.streams })
		if res, body := do(t, "GET", s.URL+"/copilotkit/threads/t/events", ""); res.StatusCode == http.StatusOK ||
			!strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s, want %s", name, res.StatusCode, body, c.want)
		}
	}
	f := chatting(t)
	s := serve(t, f, func(cfg *Config) { cfg.Agents, cfg.Log = oneAgent{}, slog.New(slog.NewTextHandler(&log, nil)) })
	r := httptest.NewRequest("GET", "http://localhost/copilotkit/threads/t/events", nil)
	s.Config.Handler.ServeHTTP(goneWriter{httptest.NewRecorder()}, r)
	if strings.Contains(log.String(), "cut in the middle") {
		t.Errorf("a client that does not read is logged: %s", &log)
	}
}
