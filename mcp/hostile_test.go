package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/credential"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/mcp"
)

// Servers that do what they should not.

// hostile is a server on standard input and output whose tool does what its argument says.
func hostile() {
	note("started", fmt.Sprint(os.Getpid()))
	in := bufio.NewReader(os.Stdin)
	listed := 0
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Arguments struct {
					Do string `json:"do"`
				} `json:"arguments"`
				Meta map[string]json.RawMessage `json:"_meta"`
			} `json:"params"`
		}
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		say := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
		answer := func(id, text string) {
			say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%q}]}}`, id, text)
		}
		switch m.Method {
		case "server/discover":
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
		case "initialize":
			say(
				`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18",`+
					`"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"h","version":"1"}}}`,
				m.ID,
			)
		case "tools/list":
			listed++
			say(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"work","inputSchema":{"type":"object"}}]}}`, m.ID)
		case "tools/call":
			id := string(m.ID)
			switch m.Params.Arguments.Do {
			case "twice":
				answer(id, "first")
				answer(id, "second")
			case "wrong ids":
				for _, id := range []string{`4711`, `null`, `"` + id + `"`, `-1`} {
					answer(id, "not yours")
				}
				answer(id, "yours")
			case "half":
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"resu`, id)
				os.Exit(0)
			case "large":
				say("%s", strings.Repeat("x", 300_000))
			case "ask":
				var got []string
				for i, method := range []string{"sampling/createMessage", "roots/list", "elicitation/create", "ping",
					"nonsense"} {
					say(`{"jsonrpc":"2.0","id":"s%d","method":%q,"params":{}}`, i, method)
					reply, _ := in.ReadBytes('\n')
					var r struct {
						ID    string
						Error *struct{ Code int }
					}
					_ = json.Unmarshal(reply, &r)
					got = append(got, fmt.Sprint(r.ID, " ", r.Error != nil))
				}
				answer(id, strings.Join(got, ", "))
			case "flood":
				for i := range 500 {
					say(
						`{"jsonrpc":"2.0","method":"notifications/progress",`+
							`"params":{"progressToken":"t%d","progress":1}}`,
						i,
					)
					say(
						`{"jsonrpc":"2.0","method":"notifications/progress",`+
							`"params":{"progressToken":%d,"progress":1e999}}`,
						i,
					)
					say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				}
				answer(id, "flooded")
			case "the same progress", "more progress":
				for i := 1; ; i++ { // without an end
					n := i
					if m.Params.Arguments.Do == "the same progress" {
						n = 1
					}
					say(
						`{"jsonrpc":"2.0","method":"notifications/progress",`+
							`"params":{"progressToken":%s,"progress":%d}}`,
						m.Params.Meta["progressToken"],
						n,
					)
				}
			case "listed":
				answer(id, fmt.Sprint(listed))
			case "say":
				answer(id, os.Getenv("SAY"))
			default:
				answer(id, "fine")
			}
		}
	}
}

// does calls the tool of a hostile server.
func does(t *testing.T, s *mcp.Server, what string) (holdfast.ToolResult, error) {
	t.Helper()
	return do(t, s, "srv_work", fmt.Sprintf(`{"do":%q}`, what))
}

// TestHostile: whatever a server writes, its calls come to an end, and the next one is
// served.
func TestHostile(t *testing.T) {
	t.Parallel()
	o := process(t, "hostile")
	o.MaxMessageBytes = 100_000
	s := open(t, o)
	for _, c := range []struct{ what, fate, text string }{
		{"twice", fine, "first"},
		{"wrong ids", fine, "yours"},
		{"ask", fine, "s0 true, s1 true, s2 true, s3 false, s4 true"},
		{"flood", fine, "flooded"},
		{"half", unknown, ""},
		{"", fine, "fine"},
		{"large", unknown, ""},
		{"", fine, "fine"},
	} {
		r, err := does(t, s, c.what)
		if got := fate(r, err); got != c.fate || r.Text != c.text {
			t.Errorf("%s: the call is %s, want %s: %+v, %v", c.what, got, c.fate, r, err)
		}
	}
	if n := len(noted(o, "started")); n != 3 {
		t.Errorf("it was started %d times, want 3", n)
	}
}

// TestEndlessProgress: news of progress that is none do not keep a call alive, and neither
// does a flood of them.
func TestEndlessProgress(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		timeout time.Duration
		want    string
	}{
		"the same progress": {300 * time.Millisecond, "the time for an answer was up"},
		"more progress":     {time.Hour, "told 100000 times of its progress"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			o := process(t, "hostile")
			o.Timeout = c.timeout
			r, err := does(t, open(t, o), what)
			if got := fate(r, err); got != unknown || !has(fmt.Sprint(err), c.want) {
				t.Errorf("the call is %s: %v", got, err)
			}
		})
	}
}

// TestListStorm: a server that says again and again that its list has changed is not asked
// each time, and a list that says the same is the same.
func TestListStorm(t *testing.T) {
	t.Parallel()
	s := open(t, process(t, "hostile"))
	before := s.Tools()
	for range 3 {
		if r, err := does(t, s, "flood"); r.Text != "flooded" || err != nil {
			t.Fatalf("got %+v, %v", r, err)
		}
	}
	var n int
	wait.Until(t, "the list is read again", func() bool {
		r, _ := does(t, s, "listed")
		_, _ = fmt.Sscan(r.Text, &n)
		return n > 1
	})
	if n > 20 {
		t.Errorf("the list was read %d times", n)
	}
	if after := s.Tools(); &after[0] != &before[0] {
		t.Error("the list is another one, and says the same")
	}
}

// TestHostileLists: however many tools a server has, and whatever describes them, the list
// is read in bounds.
func TestHostileLists(t *testing.T) {
	t.Parallel()
	deep := func(n int) string {
		return strings.Repeat(`{"type":"object","properties":{"a":`, n) + `{}` + strings.Repeat(`}}`, n)
	}
	list := []string{
		`{"name":"deep","inputSchema":` + deep(300) + `}`,
		`{"name":"recursive","inputSchema":{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},` +
			`"$defs":{"b":{"type":"object","properties":{"b":{"$ref":"#/$defs/b"}}}}}}`,
		`{"name":"circle","inputSchema":{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},` +
			`"$defs":{"b":{"$ref":"#/$defs/b"}}}}`,
		`{"name":"wide","description":"` + strings.Repeat("x", 200_000) + `","inputSchema":{"type":"object"}}`,
		`{"name":"pattern","inputSchema":{"type":"object","properties":{"a":{"type":"string","pattern":"(a+)+$"}}}}`,
	}
	for i := range 10_000 {
		list = append(list, fmt.Sprintf(`{"name":"tool%d","inputSchema":{"type":"object"}}`, i))
	}
	var log logged
	f := newFake(t, strings.Join(list, ","), nil)
	s := open(t, mcp.Options{URL: f.URL,
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if got := len(s.Tools()); got < mcp.DefaultMaxTools-5 || got > mcp.DefaultMaxTools {
		t.Errorf("%d tools", got)
	}
	if n := len(s.Refused()); n != 100 {
		t.Errorf("%d are listed as refused", n)
	}
	if n := strings.Count(log.String(), "is not used"); n > 101 ||
		!has(log.String(), "more tools of an MCP server are not used") {
		t.Errorf("%d lines of what is not used", n)
	}
	if !has(log.String(), "tool=wide why=\"what describes it") {
		t.Error("a description of 200 KB is used")
	}
	s = opened(t, mcp.Options{URL: f.URL, MaxMessageBytes: 300_000})
	if err := s.Ready(t.Context()); err == nil || !has(err.Error(), "larger than allowed") {
		t.Errorf("a list that is too large: %v", err)
	}
	deeper := newFake(t, `{"name":"deep","inputSchema":`+deep(4000)+`}`, nil)
	if err := opened(t, mcp.Options{URL: deeper.URL}).Ready(t.Context()); err == nil ||
		!has(err.Error(), "cannot be read") {
		t.Errorf("a list that is too deep: %v", err)
	}
	endless := newFake(t, "", nil)
	endless.pages = true
	s = opened(t, mcp.Options{URL: endless.URL, MaxMessageBytes: 5000})
	if err := s.Ready(t.Context()); err == nil || !has(err.Error(), "its list of tools is larger than 5000 bytes") {
		t.Errorf("a list without an end: %v", err)
	}
}

// TestListsOfNothing: a list as large as a message may be takes memory for what is used of
// it, not for each thing that is in it. It runs alone, because all that the program allocates
// is counted.
func TestListsOfNothing(t *testing.T) {
	const size, most = mcp.DefaultMaxMessageBytes - 1000, 15 * mcp.DefaultMaxMessageBytes
	for what, element := range map[string]string{
		"nothing":     `{}`,
		"one tool":    oneTool,
		"numbers":     `7`,
		"empty names": `{"name":""}`,
	} {
		f := newFake(t, strings.TrimSuffix(strings.Repeat(element+",", size/(len(element)+1)), ","), nil)
		var log logged
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s := opened(t, mcp.Options{URL: f.URL, ConnectTimeout: 5 * time.Minute, Log: log.logger()})
		if err := s.Ready(t.Context()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > most {
			t.Errorf("a list of %s takes %d MB", what, n>>20)
		}
		if !has(log.String(), "the rest of it was not read") {
			t.Errorf("a list of %s is not cut: %s", what, log.String())
		}
		s.Close()
		f.Close()
	}
}

// TestToolsInAll: what describes all tools of a server is bounded too.
func TestToolsInAll(t *testing.T) {
	t.Parallel()
	var list []string
	for i := range 100 {
		list = append(list, fmt.Sprintf(`{"name":"tool%d","description":"%s","inputSchema":{"type":"object"}}`, i,
			strings.Repeat("x", 100_000)))
	}
	s := open(t, mcp.Options{URL: newFake(t, strings.Join(list, ","), nil).URL})
	if n := len(s.Tools()); n != 41 {
		t.Errorf("%d tools of 100 KB each are used", n)
	}
	if why := s.Refused()[0].Why; !has(why, "what describes the server's tools has more than 4194304 bytes") {
		t.Error(why)
	}
}

// TestHostileResults: what a server returns is shown in bounds, and an image or a file that
// is none would spoil each further request to a model.
func TestHostileResults(t *testing.T) {
	t.Parallel()
	unreadable := func(kind string) string { return `[content of the type "` + kind + `", which cannot be read]` }
	for content, want := range map[string]string{
		`{"type":"image","data":"no base64!","mimeType":"image/png"}`: unreadable("image"),
		`{"type":"image","data":"AAAA","mimeType":"text/html"}`:       unreadable("image"),
		`{"type":"image","data":"","mimeType":"image/png"}`:           unreadable("image"),
		`{"type":"audio","data":"AAAA","mimeType":"audio/x\r\ny"}`:    unreadable("audio"),
		`{"type":"resource","resource":{"uri":"x","blob":"?","mimeType":"a/b"}}`: `[a resource: x; a/b; its ` +
			`content cannot be read]`,
		`{"type":"resource","resource":{"uri":"x","blob":"AAAA","mimeType":"\n"}}`: "[a resource: x; \n; its " +
			"content cannot be read]",
		`{"type":"resource_link"}`:              `[a resource: ]`,
		`7`:                                     `[a piece of content that cannot be read]`,
		`{"type":"text","text":"\u0000\ud800"}`: "\x00\ufffd",
	} {
		f := newFake(t, oneTool, func(w http.ResponseWriter, m message) { m.result(w, `{"content":[`+content+`]}`) })
		if r, err := do(t, open(t, mcp.Options{URL: f.URL}), "srv_work", `{}`); r.Text != want || err != nil {
			t.Errorf("%s: got %+v, %v", content, r, err)
		}
	}
	f := newFake(t, oneTool, func(w http.ResponseWriter, m message) {
		m.result(w, `{"content":[`+strings.Repeat(`{},`, 20_000)+`{}]}`)
	})
	r, err := do(t, open(t, mcp.Options{URL: f.URL}), "srv_work", `{}`)
	if len(r.Parts) != 1001 || r.Parts[1000].Text != "[19001 more pieces of content, which are left out]" ||
		err != nil {
		t.Errorf("many parts: %d, %v", len(r.Parts), err)
	}
}

// TestHostilePages: a person is not sent to a page that is none in the web.
func TestHostilePages(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "/relative", "",
		"http://"} {
		k := newTalk(t, asking(t, strings.Replace(asks, "https://example.com/login", page, 1)), mcp.Options{})
		if r, err := k.next(); fate(r, err) != failed || k.asked != nil {
			t.Errorf("%s: got %+v, %v", page, r, err)
		}
	}
}

// TestPagesFirst: a server of the older revisions says that a page has to be opened before
// the call, and then the call is made.
func TestPagesFirst(t *testing.T) {
	t.Parallel()
	server := newServer()
	w := serveWeb(t, server, false)
	var calls atomic.Int32
	w.intercept(func(w http.ResponseWriter, r *http.Request, body string) bool {
		if !strings.Contains(body, `"tools/call"`) || calls.Add(1) > 1 {
			return false
		}
		var m message
		_ = json.Unmarshal([]byte(body), &m)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32042,"message":"log `+
			`in","data":{"elicitations":[{"mode":"url","message":"Please log `+
			`in.","url":"https://example.com/login","elicitationId":"e1"}]}}}`, m.ID)
		return true
	})
	k := &talk{t: t, tool: "srv_wrong", o: mcp.Options{URL: w.URL}, call: holdfast.ToolCall{ID: "c1", Key: "key1"}}
	_, _ = k.next()
	k.question("Please log in.", `"mode":"url","url":"https://example.com/login"`)
	if r, err := k.answer(`{}`); r.Text != "this cannot be done" || err != nil {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestNotFoundIsNotOld: a 404 that is not the server's own, and no answer at all, say nothing
// about its revision.
func TestNotFoundIsNotOld(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(w http.ResponseWriter, r *http.Request){
		"404": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no route", http.StatusNotFound) },
		"502": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"307": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/x")
			w.WriteHeader(307)
		},
		"timeout": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"cut": func(w http.ResponseWriter, r *http.Request) {
			(&message{}).cut(w)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serveWeb(t, newServer(), true)
			var initialized, asked atomic.Int32
			w.intercept(func(w http.ResponseWriter, r *http.Request, body string) bool {
				if strings.Contains(body, `"initialize"`) {
					initialized.Add(1)
				}
				if asked.Add(1) == 1 {
					f(w, r)
					return true
				}
				return false
			})
			s := opened(t, mcp.Options{URL: w.URL, ConnectTimeout: 300 * time.Millisecond})
			if err := s.Ready(t.Context()); err == nil {
				t.Error("it is ready")
			}
			wait.Until(t, "it is connected to", func() bool { return len(s.Tools()) > 0 })
			if n := initialized.Load(); n != 0 {
				t.Errorf("it was initialized %d times", n)
			}
		})
	}
}

// TestSecrets: what a server is given to be let in does not come back through what it says,
// neither to models and clients nor into the log.
func TestSecrets(t *testing.T) {
	t.Parallel()
	const given = "swordfish-header swordfish-bearer swordfish-query swordfish-user swordfish-call swordfish-added " +
		"dXNlcjpzd29yZGZpc2gtdXNlcg== sword\\\"fish shark\\/fin\\/1 shark%2Ffin%2F1"
	var step atomic.Value
	step.Store("")
	f := newFake(t, oneTool, nil)
	f.call = func(w http.ResponseWriter, m message) {
		if m.Header.Get("Authorization") != "Bearer swordfish-bearer" ||
			m.Header.Get("X-Call-Token") != "swordfish-call" || m.body.URL.Query().Get("api_key") != "swordfish-query" {
			t.Errorf("the request has %v %s", m.Header, m.body.URL)
		}
		switch step.Load() {
		case "result":
			m.result(w, `{"content":[{"type":"text","text":"`+given+`"}],"structuredContent":{"a":"`+given+`"}}`)
		case "error":
			m.error(w, 200, -32603, given)
		case "refused":
			m.error(w, 400, -32602, given)
		case "unauthorized":
			m.error(w, 401, -32000, given)
		case "page":
			fmt.Fprint(w, strings.Repeat("x", 190)+given) // as much as is quoted ends in a secret
		case "question":
			m.result(w, `{"resultType":"input_required",`+
				`"inputRequests":{"a":{"method":"elicitation/create","params":{"message":"`+
				given+
				`","requestedSchema":{"type":"object"}}}}}`)
		case "progress":
			w.Header().Set("Content-Type", "text/event-stream")
			var meta struct {
				Token json.RawMessage `json:"progressToken"`
			}
			_ = json.Unmarshal(m.Params["_meta"], &meta)
			fmt.Fprintf(
				w,
				"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s,"+
					"\"progress\":1,\"message\":\"%s\"}}\n\n",
				meta.Token,
				given,
			)
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n\n", m.ID)
		}
	}
	var log logged
	s := open(t, mcp.Options{
		URL: strings.Replace(f.URL, "http://", "http://user:swordfish-user@", 1) + "/?api_key=swordfish-query",
		Log: log.logger(),
		Headers: map[string]string{
			"Authorization": "Bearer swordfish-bearer",
			"X-Api-Key":     "swordfish-header",
			"X-Other-Key":   `sword"fish`,
			"X-Signature":   "shark/fin/1",
			"X-Short":       "x",
		},
		CallHeaders: func(context.Context) (http.Header, error) {
			return http.Header{"X-Call-Token": {"swordfish-call"}}, nil
		},
		RoundTripper: func(next http.RoundTripper) http.RoundTripper { return adding{next} },
	})
	for _, what := range []string{"result", "error", "refused", "unauthorized", "page", "question", "progress"} {
		step.Store(what)
		ctx, recorded := agenttest.Context(t)
		r, err := call(t, ctx, tool(t, s, "srv_work"), holdfast.ToolCall{Arguments: json.RawMessage(`{"x":"x"}`)})
		var ask *holdfast.Interrupt
		said := ""
		if errors.As(err, &ask) {
			said = ask.Message
		}
		var e *holdfast.Error
		if errors.As(err, &e) {
			for err := error(e); err != nil; err = errors.Unwrap(err) {
				said += fmt.Sprintf("%v ", err)
				if _, ok := err.(interface{ Unwrap() []error }); ok {
					break
				}
			}
			said = fmt.Sprint(e, e.Message)
		}
		all, _ := json.Marshal(r)
		notices, _ := json.Marshal(recorded.Notices())
		if got := fmt.Sprintf("%s %s %s %s %s", all, said, notices, recorded.Kept("c1"),
			log.String()); strings.Contains(got, "swordfish") || strings.Contains(got, "dXNlcjpz") ||
			strings.Contains(got, `sword\"fish`) || strings.Contains(got, "shark/fin") ||
			strings.Contains(got, `shark\/fin`) || strings.Contains(got, "shark%2F") {
			t.Errorf("%s: it is told: %s", what, got)
		}
		if what == "unauthorized" && !has(fmt.Sprint(err), "Only an operator can change that: it wants a credential") {
			t.Errorf("the error does not say what to do: %v", err)
		}
	}
}

// adding adds a credential to requests.
type adding struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (a adding) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Added-Token", "Bearer swordfish-added")
	return a.next.RoundTrip(r)
}

// TestStderrSecrets: the same of a process, whose variables are its secrets.
func TestStderrSecrets(t *testing.T) {
	t.Parallel()
	o := process(t, "hostile")
	o.Env["API_KEY"], o.Env["SAY"] = "swordfish", "the key is swordfish, and it says hello-world"
	o.Env["GREETING"] = "hello-world"
	if r, err := does(t, open(t, o), "say"); r.Text != "the key is [secret], and it says hello-world" || err != nil {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestLogin: who has to log in first is asked to, and nothing is sent before.
func TestLogin(t *testing.T) {
	t.Parallel()
	f := newFake(t, oneTool, func(w http.ResponseWriter, m message) {
		m.result(w, fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`,
			strings.Map(func(r rune) rune { return r + 1 }, m.Header.Get("X-User"))))
	})
	loggedIn := false
	s := open(t, mcp.Options{URL: f.URL, CallHeaders: func(ctx context.Context) (http.Header, error) {
		if !loggedIn {
			return nil, &credential.LoginRequired{URL: "https://example.com/login"}
		}
		c := holdfast.CallFrom(ctx)
		return http.Header{"X-User": {c.Principal.User}}, nil
	}})
	c := holdfast.ToolCall{Principal: holdfast.Principal{User: "HAL"}}
	ctx, _ := agenttest.Context(t)
	var login *credential.LoginRequired
	if _, err := call(t, ctx, tool(t, s, "srv_work"), c); !errors.As(err, &login) ||
		login.URL != "https://example.com/login" {
		t.Errorf("the error is %v", err)
	}
	if n := len(f.got("tools/call")); n != 0 {
		t.Errorf("it was called %d times", n)
	}
	loggedIn = true
	if r, err := call(t, ctx, tool(t, s, "srv_work"), c); r.Text != "IBM" || err != nil {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestRefusals: what keeps a server from being used says what to do, in the log too.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{401: "in the agents file, credential",
		403: "the credential does not allow this", 404: "url is not that of an MCP endpoint",
		307: "redirects are not followed"} {
		var log logged
		w := serveWeb(t, newServer(), true)
		w.intercept(func(w http.ResponseWriter, _ *http.Request, _ string) bool { w.WriteHeader(status); return true })
		s := opened(t, mcp.Options{URL: w.URL, Log: log.logger()})
		if err := s.Ready(t.Context()); err == nil || !has(err.Error(), fmt.Sprint(status)) {
			t.Errorf("%d: %v", status, err)
		}
		wait.Until(t, "the log says why", func() bool { return has(log.String(), want) })
	}
}

// TestAwaitTool: a process that goes on with a call waits for a server that starts late, and
// not for one that has been there, nor for tools that are not its own.
func TestAwaitTool(t *testing.T) {
	t.Parallel()
	var sets []holdfast.Toolset
	o := process(t, "plain")
	gate := filepath.Join(t.TempDir(), "gate")
	o.Command = []string{"sh", "-c", `while [ ! -e "$0" ]; do sleep 0.02; done; exec "$1"`, gate, o.Command[0]}
	s := opened(t, o)
	sets = append(sets, s) // it is one
	if err := s.AwaitTool(t.Context(), "other_echo"); err != nil || len(sets[0].Tools()) != 0 {
		t.Errorf("another server's tool: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	came, why := make(chan error), errors.New("not wanted any more")
	go func() { came <- s.AwaitTool(t.Context(), "srv_echo") }()
	go func() { came <- s.AwaitTool(ctx, "srv_echo") }()
	cancel(why)
	if err := <-came; !errors.Is(err, why) {
		t.Errorf("the error is %v", err)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-came; err != nil {
		t.Errorf("the error is %v", err)
	}
	if got := fate(do(t, s, "srv_echo", `{}`)); got != fine {
		t.Errorf("the call is %s", got)
	}
	if _, err := do(t, s, "srv_die", `{}`); err == nil {
		t.Error("it did not die")
	}
	if err := s.AwaitTool(t.Context(), "srv_gone"); err != nil {
		t.Errorf("a server that was there: %v", err)
	}
	o = process(t, "deaf")
	o.ConnectTimeout = 100 * time.Millisecond
	deaf := opened(t, o)
	for range 2 {
		if err := deaf.AwaitTool(t.Context(), "srv_echo"); err == nil {
			t.Error("a server that never answers has tools")
		}
	}
	closed := opened(t, process(t, "deaf"))
	go func() { came <- closed.AwaitTool(t.Context(), "srv_echo") }()
	closed.Close()
	if err := <-came; err == nil {
		t.Error("a server that is not used any more has tools")
	}
}

// TestSameList: the tools are the same slice until something has changed.
func TestSameList(t *testing.T) {
	t.Parallel()
	f := newFake(t, oneTool, nil)
	s := open(t, mcp.Options{URL: f.URL})
	if a, b := s.Tools(), s.Tools(); &a[0] != &b[0] {
		t.Error("it is another slice each time")
	}
}

// TestOversizedTask: a task whose state cannot be read because it is too large is not asked
// for again and again.
func TestOversizedTask(t *testing.T) {
	t.Parallel()
	f := tasking(t, nil, `{`+complete+`"status":"completed","result":{"content":[{"type":"text","text":"`+
		strings.Repeat("x", 200_000)+`"}]}}`)
	s := open(t, mcp.Options{URL: f.URL, MaxMessageBytes: 100_000})
	if got := fate(do(t, s, "srv_work", `{}`)); got != failed {
		t.Errorf("the call is %s", got)
	}
	if n := len(f.got("tasks/get")); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
}

// TestTaskExpires: a task of which the server does not answer any more is given up when the
// server may have forgotten it.
func TestTaskExpires(t *testing.T) {
	t.Parallel()
	f := tasking(t, func(w http.ResponseWriter, m message) bool {
		if m.Method == "tools/call" {
			m.result(w, strings.Replace(created, "60000", "300", 1))
			return true
		}
		m.cut(w)
		return true
	})
	s := open(t, mcp.Options{URL: f.URL})
	if r, err := do(t, s, "srv_work", `{}`); fate(r, err) != unknown {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestDelays: a server that hangs or crashes delays the tools of no other one, nor a run
// that has all of them.
func TestDelays(t *testing.T) {
	t.Parallel()
	hangs := newFake(t, oneTool, func(_ http.ResponseWriter, m message) { <-m.body.Context().Done() })
	deaf, dead, good := process(t, "deaf"), process(t, "dead"), process(t, "plain")
	hung := open(t, mcp.Options{Name: "hung", URL: hangs.URL})
	deaf.Name, dead.Name, good.Name = "deaf", "dead", "good"
	sets := []holdfast.Toolset{hung, opened(t, deaf), opened(t, dead), open(t, good)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c, _ := agenttest.Context(t)
		c, stop := context.WithCancel(c)
		context.AfterFunc(ctx, stop)
		_, _ = call(t, c, tool(t, hung, "hung_work"), holdfast.ToolCall{})
	}()
	wait.Until(t, "one call hangs", func() bool { return len(hangs.got("tools/call")) == 1 })
	n := 0
	for _, set := range sets {
		n += len(set.Tools()) // which waits for nothing
	}
	if n < 5 {
		t.Errorf("%d tools", n)
	}
	for range 10 {
		if got := fate(do(t, sets[3].(*mcp.Server), "good_echo", `{}`)); got != fine {
			t.Errorf("the call is %s", got)
		}
	}
	select {
	case <-ended:
		t.Error("the hanging call has ended, so nothing was shown")
	default:
	}
	cancel()
	<-ended
}

// TestOnce: a request is never sent twice by the HTTP client, which does so by itself with
// one that names a key for that.
func TestOnce(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	f := newFake(t, oneTool, func(w http.ResponseWriter, m message) {
		if calls.Add(1) > 1 {
			m.cut(w) // of a connection that was used before
			return
		}
		m.result(w, `{"content":[]}`)
	})
	s := open(t, mcp.Options{URL: f.URL, CallHeaders: func(ctx context.Context) (http.Header, error) {
		return http.Header{"Idempotency-Key": {"k1"}}, nil
	}})
	_, _ = do(t, s, "srv_work", `{}`)
	if got := fate(do(t, s, "srv_work", `{}`)); got != unknown {
		t.Errorf("the call is %s", got)
	}
	if n := calls.Load(); n != 2 {
		t.Errorf("it was sent %d times, want 2", n)
	}
}
