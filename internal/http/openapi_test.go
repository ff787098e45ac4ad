package http

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// document returns /openapi.json as clients see it.
func document(t *testing.T, keys bool) map[string]any {
	t.Helper()
	s := serve(t, &fake{}, func(c *Config) { c.Door.LoopbackOnly = !keys })
	res, body := do(t, "GET", s.URL+"/openapi.json", "")
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return doc.(map[string]any)
}

// routed returns every method and pattern that the router serves.
func routed(t *testing.T) []string {
	t.Helper()
	var out []string
	err := chi.Walk(newRouter(&Config{}),
		func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
			out = append(out, method+" "+pattern)
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

func TestEveryRouteIsDocumented(t *testing.T) {
	var documentedRoutes []string
	for path, item := range document(t, false)["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			documentedRoutes = append(documentedRoutes,
				strings.ToUpper(method)+" "+strings.Replace(path, "{path}", "*", 1))
		}
	}
	slices.Sort(documentedRoutes)
	if routes := routed(t); !slices.Equal(routes, documentedRoutes) {
		t.Errorf("routes:     %q\ndocumented: %q", routes, documentedRoutes)
	}
}

// each calls f with every value in v and the JSON pointer to it.
func each(at string, v any, f func(at string, v any)) {
	f(at, v)
	switch v := v.(type) {
	case map[string]any:
		for k, member := range v {
			each(at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(k), member, f)
		}
	case []any:
		for i, element := range v {
			each(at+"/"+strconv.Itoa(i), element, f)
		}
	}
}

func resolve(doc map[string]any, ref string) any {
	var v any = doc
	for _, part := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		m, _ := v.(map[string]any)
		v = m[part]
	}
	return v
}

// member is where a member of an object is described.
var member = regexp.MustCompile(`/properties/[^/]+$`)

// TestDocumentIsSound checks what client generators rely on.
func TestDocumentIsSound(t *testing.T) {
	doc := document(t, true)
	if doc["openapi"] != "3.1.0" || resolve(doc, "#/info/title") == nil || resolve(doc, "#/info/version") == nil {
		t.Errorf("%v %v", doc["openapi"], doc["info"])
	}
	used := map[string]bool{}
	each("#", doc, func(at string, v any) {
		m, _ := v.(map[string]any)
		if ref, is := m["$ref"].(string); is {
			used[ref] = true
			if resolve(doc, ref) == nil {
				t.Errorf("%s refers to %s, which does not exist", at, ref)
			}
		}
		if _, has := m["default"]; has && member.MatchString(at) {
			t.Errorf("%s has a default, so generated clients require it in requests: say it in the description", at)
		}
	})
	for _, kind := range []string{"schemas", "parameters"} {
		for name := range resolve(doc, "#/components/"+kind).(map[string]any) {
			if ref := "#/components/" + kind + "/" + name; !used[ref] {
				t.Errorf("nothing uses %s", ref)
			}
		}
	}
	ids := map[string]bool{}
	for path, item := range doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			checkOperation(t, doc, path, method, op.(map[string]any), ids)
		}
	}
}

func checkOperation(t *testing.T, doc map[string]any, path, method string, op map[string]any, ids map[string]bool) {
	t.Helper()
	id, _ := op["operationId"].(string)
	if id == "" || ids[id] || op["summary"] == "" {
		t.Errorf("%s %s: the operationId %q is missing or taken, or there is no summary", method, path, id)
	}
	ids[id] = true
	var inPath []string
	params, _ := op["parameters"].([]any)
	for _, p := range params {
		p := resolve(doc, p.(map[string]any)["$ref"].(string)).(map[string]any)
		if p["in"] == "path" {
			inPath = append(inPath, "{"+p["name"].(string)+"}")
		}
	}
	if want := regexp.MustCompile(`\{\w+\}`).FindAllString(path, -1); !slices.Equal(inPath, want) {
		t.Errorf("%s %s has the path parameters %q", method, path, inPath)
	}
	responses := op["responses"].(map[string]any)
	success := false
	for code, r := range responses {
		success = success || code[0] == '2'
		if text, _ := r.(map[string]any)["description"].(string); text == "" {
			t.Errorf("%s %s: %s has no description", method, path, code)
		}
	}
	if !success {
		t.Errorf("%s %s cannot succeed", method, path)
	}
}

// TestErrorsAreDocumented: every code in the status table is documented by some route,
// and every documented code is in the table.
func TestErrorsAreDocumented(t *testing.T) {
	admitted := map[string]bool{codes.MethodNotAllowed: true} // belongs to no route
	for _, keys := range []bool{true, false} {
		for _, r := range allRoutes() {
			for code, names := range r.errorsByStatus(keys) {
				for _, name := range names {
					admitted[name] = true
					if code == 0 {
						t.Errorf("%s %s admits to %s, which has no status", r.method, r.path, name)
					}
				}
			}
		}
	}
	if known, said := slices.Sorted(maps.Keys(exchange.Statuses)),
		slices.Sorted(maps.Keys(admitted)); !slices.Equal(known, said) {
		t.Errorf("status table: %q\nroutes:       %q", known, said)
	}
}

// TestKeysAreDocumented: a server with keys documents which routes require one; a server
// without keys requires none.
func TestKeysAreDocumented(t *testing.T) {
	for _, keys := range []bool{true, false} {
		doc := document(t, keys)
		for _, r := range allRoutes() {
			path := doc["paths"].(map[string]any)[documented(r.path)].(map[string]any)
			op := path[strings.ToLower(r.method)].(map[string]any)
			if wants := op["security"] != nil; wants != (keys && !r.open) {
				t.Errorf("keys %v: %s %s wants a key: %v", keys, r.method, r.path, wants)
			}
			if _, says := op["responses"].(map[string]any)["401"]; says != (keys && !r.open) {
				t.Errorf("keys %v: %s %s may answer 401: %v", keys, r.method, r.path, says)
			}
		}
	}
}

// schemas compiles the document's schemas so strictly that unknown members are found.
// Clients must not be as strict.
func schemas(t *testing.T) func(name string) *jsonschema.Schema {
	t.Helper()
	doc := document(t, false)
	each("#", doc["components"], func(_ string, v any) {
		m, _ := v.(map[string]any)
		if _, isObject := m["properties"]; isObject && m["type"] == "object" && m["additionalProperties"] == nil {
			m["additionalProperties"] = false
		}
	})
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	return func(name string) *jsonschema.Schema {
		s, err := c.Compile("openapi.json#/components/schemas/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// eventful is an engine whose answers have every possible member set.
func eventful() *fake {
	n := int64(3)
	f := posting(records(agui.RunStarted{ThreadID: "t", RunID: "r"}), records(agui.RunFinished{
		ThreadID: "t", RunID: "r",
		Outcome: &agui.Outcome{Type: agui.OutcomeInterrupt, Interrupts: []agui.Interrupt{
			{
				ID:             "i",
				Reason:         "confirmation",
				Message:        "Sure?",
				ToolCallID:     "c",
				ExpiresAt:      "2026-01-31T12:00:00Z",
				ResponseSchema: json.RawMessage(`{"type":"object"}`),
				Metadata:       json.RawMessage(`{"a":1}`),
				SubagentRunID:  "s",
			},
		}},
		Usage: []holdfast.Usage{
			{
				Provider:        "p",
				Model:           "m",
				InputTokens:     &n,
				OutputTokens:    &n,
				TotalTokens:     &n,
				ReasoningTokens: &n,
				CachedInput:     &n,
				CacheWriteInput: &n,
			},
		},
	}))
	f.info = &threads.Info{
		ID:        "t",
		Agent:     "a",
		Status:    threads.StatusInterrupted,
		Run:       "r",
		Outcome:   "interrupt",
		Code:      "c",
		Iteration: 1,
		Cursor:    "1-x",
		Text:      "m",
		Interrupts: []threads.Interrupt{
			{
				ID:             "i",
				Reason:         "r",
				Message:        "m",
				ToolCallID:     "c",
				ResponseSchema: json.RawMessage(`{}`),
				ExpiresAt:      "2026-01-31T12:00:00Z",
				Metadata:       json.RawMessage(`{}`),
			},
		},
		PendingToolCalls: []string{"c"},
		OutsideCalls: []threads.OutsideCall{
			{ID: "o", Tool: "approve", ExpiresAt: time.Unix(0, 1).UTC(), Abandonable: true},
		},
		UpdatedAt:        time.Unix(0, 1).UTC(),
		ETag:             "c1",
		Title:            "a title",
		Hidden:           true,
		CreatedAt:        time.Unix(0, 1).UTC(),
		Parent:           "p",
		ParentCheckpoint: "000000000001",
		Size:             map[string]int64{"records": 7},
	}
	f.events = func(store.Cursor, agui.Dialect) (*agui.Reply, error) { return reply(), nil }
	return f
}

// oneApp is an interface of a tool.
type oneApp struct{}

func (oneApp) App(context.Context, holdfast.Principal, string, string) (any, error) {
	return json.RawMessage(`{"html":"<p>hi</p>","csp":{"connectDomains":["https://a.example"]},"prefersBorder":true}`),
		nil
}

func (oneApp) CallForApp(context.Context, holdfast.Principal, string, string, AppCall) (json.RawMessage, error) {
	return json.RawMessage(`{"content":[{"type":"text","text":"done"}],"structuredContent":{"a":1},"isError":true}`),
		nil
}

// bodies are bodies that the routes accept, by schema.
var bodies = map[string]string{
	"RunAgentInput":   minimal,
	"Mark":            `{"label":"mine","state":{"n":1}}`,
	"Travel":          `{"checkpointId":"000000000001","threadId":"t2","reuseResults":true}`,
	"Travel 200":      `{"preview":true}`, // what gets this answer
	"Rewind":          `{"messageId":"m","reuse":["c"],"preview":true}`,
	"Prune":           `{"keep":3,"dryRun":true}`,
	"DeleteOlderThan": `{"olderThan":"720h","dryRun":true}`,
	"DeleteInactive":  `{"threshold":"168h","dryRun":true}`,
	"Backup":          `{"dir":"/backup"}`,
	"ThreadDocument":  someDocument,
	"ToolByHand":      `{"arguments":{"expression":"6*7"},"idempotencyKey":"k"}`,
	"Description":     `{"title":"mine","hidden":true}`,
	"StatePatch":      `[{"op":"add","path":"/a","value":1}]`,

	"AppCall":    `{"name":"refresh","arguments":{"city":"Oslo"}}`,
	"CallResult": `{"result":{"approved":true}}`,

	"AISDKPost": `{"id":"t","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"hi"}]}]}`,

	"CopilotKitCall":    `{"method":"agent/run","params":{"agentId":"helper"},"body":` + minimal + `}`,
	"CopilotKitStop":    `{"runId":"r"}`,
	"CopilotKitAgentID": `{"agentId":"helper"}`,
	"CopilotKitChange":  `{"agentId":"helper","name":"mine","archived":true}`,
}

// TestAnswersMatchTheDocument calls every route, and checks the status, the media type
// and the body of the response.
func TestAnswersMatchTheDocument(t *testing.T) {
	schema := schemas(t)
	s := serve(t, eventful(), func(c *Config) {
		c.Agents, c.UI, c.Metrics = twoAgents, says("page"), says("metrics")
		c.Operator = func(*http.Request) (string, error) { return "operator", nil }
		c.Backup = func(context.Context, string) error { return nil }
		c.Console, c.Apps = &operated{}, oneApp{}
	})
	for _, r := range allRoutes() {
		path := strings.NewReplacer("{thread}", "t", "{run}", "r", "{call}", "c", "{agent}", "helper", "{tool}",
			"calculate", "{checkpoint}", "000000000001", "{message}", "m", "*", "app.js").
			Replace(r.path)
		for _, want := range r.answers {
			if want.code != http.StatusOK && want.code != http.StatusCreated {
				continue // covered by another test's fake
			}
			body := cmp.Or(bodies[r.body+" "+strconv.Itoa(want.code)], bodies[r.body])
			if r.body != "" {
				valid(t, schema(r.body), body)
			}
			if slices.Contains(r.params, "token") {
				path += "?token=x"
			}
			if r.method == "GET" && strings.HasSuffix(r.id, "Run") {
				path = strings.Split(path, "?")[0] +
					map[string]string{typeSSE: "?runId=r", typeJSON: "?threadId=t"}[want.kind]
			}
			if r.id == "aiSDKStream" { // the thread does not run
				path += "?after=1-x"
			}
			kind := append(slices.Clone(r.bodyKinds), typeJSON)[0]
			res, got := do(t, r.method, s.URL+path, body, "Content-Type", kind, "Accept", want.kind)
			if res.StatusCode != want.code {
				t.Errorf("%s %s: %d %s", r.method, path, res.StatusCode, got)
				continue
			}
			if want.schema != "" {
				valid(t, schema(want.schema), got)
			}
			if kind := res.Header.Get("Content-Type"); (want.kind == typeSSE || want.kind == typeJSON) &&
				kind != want.kind {
				t.Errorf("%s %s: %s, not %s", r.method, path, kind, want.kind)
			}
		}
	}
}

func valid(t *testing.T, s *jsonschema.Schema, body string) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err == nil {
		err = s.Validate(v)
	}
	if err != nil {
		t.Errorf("%s\n%v", body, err)
	}
}

func TestErrorsMatchTheDocument(t *testing.T) {
	schema := schemas(t)
	f := &fake{err: holdfast.Errorf(codes.NotFound, "No.").WithHint("Look elsewhere.").With("threadId", "t")}
	f.post = func(context.Context, holdfast.Principal, string, *agui.RunAgentInput) (*agui.Reply, error) {
		return nil, f.err
	}
	f.events = func(store.Cursor, agui.Dialect) (*agui.Reply, error) { return nil, f.err }
	s := serve(t, f, nil)
	for _, r := range allRoutes() {
		path := strings.NewReplacer("{thread}", "t", "{run}", "r", "{agent}", "helper", "{checkpoint}", "000000000001",
			"*", "app.js").
			Replace(r.path)
		if res, body := do(t, r.method, s.URL+path, minimal, "Content-Type",
			"application/json"); res.StatusCode >= 400 && r.method != "HEAD" {
			valid(t, schema("Error"), body)
		}
	}
	_, body := do(t, "GET", s.URL+"/nowhere", "")
	valid(t, schema("Error"), body)
}

// TestInputsMatchTheDocument: the decoder accepts exactly what the document says.
func TestInputsMatchTheDocument(t *testing.T) {
	schema := schemas(t)("RunAgentInput")
	for body, good := range map[string]bool{
		minimal: true,
		`{"threadId":"t","runId":"r","messages":[]}`:                                                              true,
		`{"threadId":"t","runId":"r","messages":[],"tools":null,"context":null,"state":null,"resume":null,"x":1}`: true,
		`{"threadId":"t","runId":"r","protocolVersion":"1.0","parentRunId":"p","state":{"a":1},
			"messages":[{"id":"1","role":"assistant","content":null,
				"toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},
			{"id":"2","role":"tool","toolCallId":"c","content":[{"type":"text","text":"x"}]},
			{"id":"3","role":"user",
				"content":[{"type":"image","source":{"type":"url","value":"https://a.example/b.png"}}]}],
			"tools":[{"name":"f","description":"d","parameters":{"type":"object"}}],
			"context":[{"description":"d","value":"v"}],
			"forwardedProps":{"holdfast":{"onBusy":"cancel_and_run","branch":true,"allowStale":true},"mine":1},
			"resume":[{"interruptId":"i","status":"resolved","payload":{"ok":true}}]}`: true,
		`{"threadId":"","runId":"r","messages":[]}`:                                                  false,
		`{"runId":"r","messages":[]}`:                                                                false,
		`{"threadId":"t","runId":"r"}`:                                                               false,
		`{"threadId":"t","messages":[]}`:                                                             true,
		`{"threadId":"t","runId":null,"messages":[]}`:                                                true,
		`{"threadId":"t","runId":"","messages":[]}`:                                                  true,
		`{"threadId":"t","runId":7,"messages":[]}`:                                                   false,
		`{"threadId":"t","runId":"r","messages":{}}`:                                                 false,
		`{"threadId":"t","runId":"r","messages":[{"id":"m","role":"bot","content":"x"}]}`:            false,
		`{"threadId":"t","runId":"r","protocolVersion":"one","messages":[]}`:                         false,
		`{"threadId":"t","runId":"r","messages":[],"resume":[{"interruptId":"i","status":"maybe"}]}`: false,
		`{"threadId":"t","runId":"r","messages":[],"tools":[{"description":"no name"}]}`:             false,
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_, decoded := agui.DecodeInput([]byte(body))
		if invalid := schema.Validate(v); (invalid == nil) != good || (decoded == nil) != good {
			t.Errorf("%s\nschema: %v\ndecoder: %v", body, invalid, decoded)
		}
	}
}
