package http

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/threads"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// timeMachine is the part of the fake engine that knows the past. It records what it
// was last asked for.
type timeMachine struct {
	f     *fake
	asked string
}

func (m *timeMachine) ask(what string, args ...any) error {
	m.asked = what + fmt.Sprintf("%+v", args)
	return m.f.err
}

var someCheckpoint = threads.Checkpoint{
	ID:        "000000000001",
	ThreadID:  "t",
	CreatedAt: time.Unix(0, 1).UTC(),
	ETag:      "c1",
	Format:    2,
	Agent:     "a",
	Run:       "r",
	Status:    threads.StatusIdle,
	Iteration: 1,
	Message:   "m",
	Messages:  1,
	Metadata:  threads.Metadata{Source: "fork", Step: 1, Parent: "000000000003", ParentThread: "p", Label: "mine"},
}

func (m *timeMachine) Checkpoints(
	_ context.Context, _ holdfast.Principal, thread, before string, until time.Time, limit int,
) ([]threads.Checkpoint, error) {
	return []threads.Checkpoint{someCheckpoint}, m.ask("list", thread, before, until.Unix(), limit)
}

func (m *timeMachine) Checkpoint(_ context.Context, _ holdfast.Principal, thread, id string) (*threads.Detail, error) {
	return &threads.Detail{
		Checkpoint: someCheckpoint,
		History:    []json.RawMessage{json.RawMessage(`{"id":"m","role":"user","content":"hi"}`)},
		State:      json.RawMessage(`{"n":1}`),
		Outcome:    "error",
		Code:       "c",
		OpenCalls:  []threads.OpenCall{{ID: "c", Tool: "f", Interrupt: "i"}},
		PendingWrites: []threads.PendingWrite{
			{
				CallID:      "c",
				Tool:        "f",
				Message:     "m2",
				Result:      json.RawMessage(`"x"`),
				Failed:      true,
				ThreadID:    "t",
				CompletedAt: time.Unix(0, 1).UTC(),
			},
		},
	}, m.ask("load", thread, id)
}

func (m *timeMachine) Mark(
	_ context.Context, _ holdfast.Principal, thread string, mark threads.Mark,
) (*threads.Checkpoint, error) {
	return &someCheckpoint, m.ask("mark", thread, mark.Label, string(mark.State), mark.ETag)
}

func (m *timeMachine) Describe(
	_ context.Context, _ holdfast.Principal, thread, etag string, d threads.Description,
) (*threads.Info, error) {
	info := *m.f.info
	if d.Title != nil {
		info.Title = *d.Title
	}
	if d.Hidden != nil {
		info.Hidden = *d.Hidden
	}
	return &info, m.ask("describe", thread, etag, info.Title, info.Hidden)
}

func (m *timeMachine) Patch(
	_ context.Context, _ holdfast.Principal, thread string, p threads.StatePatch,
) (*threads.PatchedState, error) {
	return &threads.PatchedState{Info: m.f.info, Version: "s1"},
		m.ask("patch", thread, p.ETag, string(p.Patch), p.Merge)
}

func (m *timeMachine) travelled(to threads.Travel) *threads.Traveled {
	return &threads.Traveled{
		Thread:     *m.f.info,
		Checkpoint: someCheckpoint,
		Preview:    to.Preview,
		Effects: []threads.PastEffect{
			{
				CallID:    "c",
				Tool:      "f",
				Arguments: json.RawMessage(`{"n":1}`),
				Effect:    "once",
				Message:   "m",
				Failed:    true,
				Reusable:  true,
			},
		},
	}
}

func (m *timeMachine) Fork(
	_ context.Context, _ holdfast.Principal, thread string, to threads.Travel,
) (*threads.Traveled, error) {
	return m.travelled(to), m.ask("fork", thread, to)
}

func (m *timeMachine) Rewind(
	_ context.Context, _ holdfast.Principal, thread string, to threads.Travel,
) (*threads.Traveled, error) {
	return m.travelled(to), m.ask("rewind", thread, to)
}

func (m *timeMachine) State(_ context.Context, _ holdfast.Principal, thread string) (*threads.State, error) {
	if m.f.shared == "none" {
		return &threads.State{}, nil
	}
	if m.f.shared != "" {
		return &threads.State{State: json.RawMessage(m.f.shared)}, nil
	}
	return &threads.State{
		State: json.RawMessage(`{"n":1}`),
		MiddlewareState: json.RawMessage(`{"schemaSignature":"a.b","schemaVersion":1,` +
			`"stateVersions":{"a.b":1},"states":{"a.b":{}}}`),
	}, m.ask("state", thread)
}

func (m *timeMachine) Runs(
	_ context.Context, _ holdfast.Principal, thread, before string, limit int,
) ([]threads.Run, error) {
	at := time.Unix(0, 1).UTC()
	return []threads.Run{
		{
			ID:        "r2",
			Agent:     "a",
			StartedAt: at,
			Records:   7,
			Usage:     someUsage(),
			Cost:      "0.5",
			Processes: []threads.RunProcess{{Process: "p", Epoch: 1, Tag: "x7k2ab", Since: at}},
		},
		{
			ID:          "r",
			Agent:       "a",
			StartedAt:   at,
			EndedAt:     at,
			Outcome:     "error",
			Code:        "c",
			Continues:   "r0",
			ContinuedBy: "r2",
			ParentRunID: "p",
		},
	}, m.ask("runs", thread, before, limit)
}

func (m *timeMachine) Children(_ context.Context, _ holdfast.Principal, thread string) ([]threads.Info, error) {
	return []threads.Info{*m.f.info}, m.ask("children", thread)
}

func (m *timeMachine) Prune(
	_ context.Context, _ holdfast.Principal, thread, etag string, keep int, dryRun bool,
) (*threads.Cleaned, error) {
	return &threads.Cleaned{
		DryRun:      dryRun,
		Threads:     1,
		Checkpoints: 2,
		Messages:    3,
	}, m.ask("prune", thread, etag, keep, dryRun)
}

func (m *timeMachine) Delete(_ context.Context, _ holdfast.Principal, thread, etag string, children bool) (int, error) {
	return 2, m.ask("delete", thread, etag, children)
}

func (m *timeMachine) DeleteOlderThan(
	_ context.Context, _ holdfast.Principal, before time.Time, dryRun bool,
) (*threads.Cleaned, error) {
	return &threads.Cleaned{DryRun: dryRun}, m.ask("older", before.Unix(), dryRun)
}

func (m *timeMachine) DeleteInactive(
	_ context.Context, _ holdfast.Principal, before time.Time, dryRun bool,
) (*threads.Cleaned, error) {
	return &threads.Cleaned{DryRun: dryRun, Kept: 1}, m.ask("inactive", before.Unix(), dryRun)
}

// atNoon serves with a clock that is stopped at second 1,000,000.
func atNoon(t *testing.T, f *fake) string {
	t.Helper()
	return serve(t, f, func(c *Config) { c.Now = clock.Plain(func() time.Time { return time.Unix(1_000_000, 0) }) }).URL
}

// TestHistoryRoutes: the engine is asked for exactly what the request says.
func TestHistoryRoutes(t *testing.T) {
	zero := time.Time{}.Unix()
	rewound := "200 " + fmt.Sprintf("rewind[t %+v]", threads.Travel{Checkpoint: "000000000001"})
	for request, want := range map[string]string{
		"GET /threads/t/checkpoints": fmt.Sprintf("200 list[t  %d 50]", zero),
		"GET /threads/a%2Fb/checkpoints?limit=7&before=000000000009": fmt.Sprintf("200 list[a/b 000000000009 %d 7]",
			zero),
		"GET /threads/t/checkpoints?before=1970-01-01T00:01:00Z":       "200 list[t  60 50]",
		"GET /threads/t/checkpoints/000000000001":                      "200 load[t 000000000001]",
		"POST /threads/t/checkpoints":                                  "201 mark[t   ]",
		`POST /threads/t/checkpoints {"label":"mine","state":{"n":1}}`: `201 mark[t mine {"n":1} ]`,
		"POST /threads/t/fork {}": "201 fork[t {Checkpoint: " +
			"Message: Thread: ReuseResults:false OnlyRecorded:false Reuse:[] Preview:false ETag:}]",
		`POST /threads/t/fork {"messageId":"m","threadId":"t2","reuseResults":true}`: "201 fork[t {Checkpoint: " +
			"Message:m Thread:t2 ReuseResults:true OnlyRecorded:false Reuse:[] Preview:false ETag:}]",
		`POST /threads/t/rewind {"checkpointId":"000000000001","messageId":null}`: rewound,
		`POST /threads/t/fork {"preview":true,"reuse":["a","b"]}`: "200 fork[t {Checkpoint: " +
			"Message: Thread: ReuseResults:false OnlyRecorded:false Reuse:[a b] Preview:true ETag:}]",
		`POST /threads/t/rewind {"messageId":"m","reuse":"a"}`: "400 ",
		`POST /threads/t/rewind {"messageId":"m","onlyRecorded":true}`: "200 rewind[t {Checkpoint: " +
			"Message:m Thread: ReuseResults:false OnlyRecorded:true Reuse:[] Preview:false ETag:}]",
		"POST /threads/t/prune":                          "200 prune[t  10 false]",
		`POST /threads/t/prune {"keep":1,"dryRun":true}`: "200 prune[t  1 true]",
		"DELETE /threads/t":                              "200 delete[t  false]",
		"DELETE /threads/t?children=delete":              "200 delete[t  true]",
		"GET /threads/t/children":                        "200 children[t]",
		"GET /threads/t/state":                           "200 state[t]",
		"GET /threads/t/runs":                            "200 runs[t  50]",
		"GET /threads/t/runs?limit=2&before=r9":          "200 runs[t r9 2]",
		"GET /threads/t/runs?limit=201":                  "400 ",
		`POST /maintenance/delete-older-than {"before":"1970-01-01T00:01:00Z"}`:         "200 older[60 false]",
		`POST /maintenance/delete-older-than {"olderThan":"1h30m","dryRun":true}`:       "200 older[994600 true]",
		`POST /maintenance/delete-inactive {"threshold":"100s"}`:                        "200 inactive[999900 false]",
		"POST /maintenance/delete-inactive\n  {\"dryRun\":true, \"threshold\":\"1s\"} ": "200 inactive[999999 true]",
	} {
		f := &fake{}
		url := atNoon(t, f)
		parts := strings.SplitN(strings.Replace(request, "\n", " ", 1), " ", 3)
		body := strings.Join(parts[2:], "")
		res, answered := do(t, parts[0], url+parts[1], body, "Content-Type", "application/json")
		if got := fmt.Sprintf("%d %s", res.StatusCode, f.timeMachine.asked); got != want {
			t.Errorf("%s\n got %s\nwant %s\n%s", request, got, want, answered)
		}
	}
}

// TestHistoryMistakes: a request that is not understood is refused before anything
// happens; the error names the member and does not repeat its value.
func TestHistoryMistakes(t *testing.T) {
	const secret = "hunter2"
	long := strings.Repeat("x", 257)
	const both = `{"before":"2026-01-31T12:00:00Z","olderThan":"1h"}`
	for request, says := range map[string]string{
		"GET /threads/t/checkpoints?limit=0":          "limit",
		"GET /threads/t/checkpoints?before=yesterday": "before",
		`POST /threads/t/checkpoints {"labels":"` + secret +
			`"}`: "Send an object with label, state.",
		`POST /threads/t/checkpoints {"Label":"x"}`:                   `There is no member \"Label\"`,
		`POST /threads/t/checkpoints {"label":"a","label":"b"}`:       "label is there twice",
		`POST /threads/t/checkpoints {"state":{"a":[{"b":1,"b":2}]}}`: "state.a[0].b is there twice",
		`POST /threads/t/checkpoints {"state":` + strings.Repeat("[", 257) + strings.Repeat("]", 257) +
			`}`: "nested more than 256 deep",
		`POST /threads/t/checkpoints {"label":7}`: "label has the wrong type: found number",
		`POST /threads/t/checkpoints {"label":"` + long +
			`"}`: "longer than 256 bytes",
		`POST /threads/t/checkpoints {"label":"a\u0000b"}`: "control characters",
		`POST /threads/t/checkpoints {"label":"x"} {}`:     "not valid JSON",
		`POST /threads/t/checkpoints [1]`:                  "not a JSON object",
		"POST /threads/t/checkpoints {\"label\":\"\xff\"}": "UTF-8",
		`POST /threads/t/fork {"threadId":"` + long +
			`"}`: "threadId is longer",
		`POST /threads/t/fork {"checkpointId":"a","messageId":"b"}`: "Send one of them.",
		`POST /threads/t/fork {"` + long +
			`":1}`: "There is no member",
		`POST /threads/t/rewind {"messageId":"m","threadId":"t2"}`: `There is no member \"threadId\"`,
		`POST /threads/t/prune {"keep":0}`:                         "DELETE the thread",
		`POST /threads/t/prune {"keep":1.5}`:                       "keep has the wrong type",
		`POST /threads/t/prune {"dryrun":true}`:                    "Send an object with keep, dryRun.",
		"DELETE /threads/t?children=keep":                          "children must be delete",
		"POST /maintenance/delete-older-than {}":                   "Either before or olderThan",
		`POST /maintenance/delete-older-than {"before":"` + secret +
			`"}`: "before must be a time",
		`POST /maintenance/delete-older-than {"olderThan":"30 days"}`: "olderThan must be a span",
		`POST /maintenance/delete-older-than {"olderThan":"0s"}`:      "more than 0s",
		"POST /maintenance/delete-older-than " + both:                 "Either before or olderThan",
		`POST /maintenance/delete-inactive {"threshold":"-1h"}`:       "threshold must be a span",
		"POST /maintenance/delete-inactive":                           "threshold must be a span",
		`POST /maintenance/delete-inactive {"threshold":"1h","tenant":"` + secret +
			`","user":"somebody"}`: `There is no member \"tenant\"`,
	} {
		f := &fake{}
		url := atNoon(t, f)
		parts := strings.SplitN(request, " ", 3)
		res, answered := do(t, parts[0], url+parts[1], strings.Join(parts[2:], ""), "Content-Type", "application/json")
		if res.StatusCode != 400 || !strings.Contains(answered, `"code":"invalid_input"`) ||
			!strings.Contains(answered, `"hint":`) || !strings.Contains(answered, says) {
			t.Errorf("%.80s: %d %s", request, res.StatusCode, answered)
		}
		if f.timeMachine.asked != "" || strings.Contains(answered, secret) || len(answered) > 500 {
			t.Errorf("%.80s: asked for %s, answered %s", request, f.timeMachine.asked, answered)
		}
	}
}

// TestIfMatch: a thread's ETag, quoted or not, guards changes to it.
func TestIfMatch(t *testing.T) {
	f := &fake{info: &threads.Info{ID: "t", Status: threads.StatusIdle, ETag: "c12"}}
	s := serve(t, f, nil)
	res, _ := do(t, "GET", s.URL+"/threads/t", "")
	etag := res.Header.Get("ETag")
	if etag != `"c12"` {
		t.Errorf("the ETag is %s", etag)
	}
	for _, request := range []string{"POST /threads/t/checkpoints", "POST /threads/t/fork", "POST /threads/t/rewind",
		"POST /threads/t/prune", "DELETE /threads/t", "DELETE /copilotkit/threads/t",
		"POST /copilotkit/threads/t/archive", "PATCH /copilotkit/threads/t"} {
		method, path, _ := strings.Cut(request, " ")
		for given, want := range map[string]string{etag: "c12", "c12": "c12", `W/"c12"`: "c12", "*": "", " * ": ""} {
			res, body := do(t, method, s.URL+path, "", "If-Match", given)
			if res.StatusCode >= 300 || strings.Contains(f.timeMachine.asked, "c12") != (want != "") {
				t.Errorf("%s with If-Match %s: %d %s %s", request, given, res.StatusCode, f.timeMachine.asked, body)
			}
		}
		for _, given := range []string{`"a", "b"`, "a,b", `"`, `""`, " ", "a b", strings.Repeat("x", 300)} {
			if res, body := do(t, method, s.URL+path, "", "If-Match", given); res.StatusCode != 400 {
				t.Errorf("%s with If-Match %.10s: %d %s", request, given, res.StatusCode, body)
			}
		}
	}
	f.err = holdfast.Errorf(codes.CheckpointConflict, "moved").With("expected", "c1").With("actual", "c2")
	res, body := do(t, "DELETE", s.URL+"/threads/t", "", "If-Match", `"c1"`)
	if res.StatusCode != http.StatusConflict || !strings.Contains(body, `"details":{"actual":"c2","expected":"c1"}`) {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

// TestIfMatchIsObeyedOrRefused: no route that changes something ignores a condition. Those
// that obey it say so in the document; the backup needs no thread.
func TestIfMatchIsObeyedOrRefused(t *testing.T) {
	s := serve(t, &fake{info: &threads.Info{ID: "t", ETag: "c12"}}, nil)
	fill := strings.NewReplacer("{thread}", "t", "{run}", "r", "{agent}", "a", "{tool}", "f")
	for _, route := range allRoutes() {
		if route.method == "GET" || route.method == "HEAD" || slices.Contains(route.params, "IfMatch") ||
			route.id == "backup" {
			continue
		}
		res, body := do(t, route.method, s.URL+fill.Replace(route.path), "{}", "If-Match", `"c1"`, "Content-Type",
			typeJSON)
		if res.StatusCode != http.StatusBadRequest || !strings.Contains(body, "does not take If-Match") ||
			!strings.Contains(body, `"field":"If-Match"`) {
			t.Errorf("%s %s: %d %s", route.method, route.path, res.StatusCode, body)
		}
	}
}

// TestHistoryBodiesMatchTheDocument: the routes accept exactly what the document says.
func TestHistoryBodiesMatchTheDocument(t *testing.T) {
	schema := schemas(t)
	s := serve(t, &fake{}, nil)
	paths := map[string]string{
		"Mark":            "/threads/t/checkpoints",
		"Travel":          "/threads/t/fork",
		"Rewind":          "/threads/t/rewind",
		"Prune":           "/threads/t/prune",
		"DeleteOlderThan": "/maintenance/delete-older-than",
		"DeleteInactive":  "/maintenance/delete-inactive",
	}
	for name, path := range paths {
		for _, body := range []string{
			bodies[name], `{"x":1}`, `{"label":""}`, `{"label":1}`, `{"state":null}`, `{"messageId":"m"}`,
			`{"checkpointId":"c"}`, `{"reuseResults":"yes"}`,
			`{"messageId":"m","checkpointId":"c"}`, `{"messageId":"m","threadId":"t2"}`, `{"keep":1}`, `{"keep":0}`,
			`{"keep":"1"}`,
			`{"before":"2026-01-31T12:00:00Z"}`, `{"before":"now"}`,
			`{"before":"2026-01-31T12:00:00Z","olderThan":"1h"}`, `{"threshold":"1h"}`, `[]`,
		} {
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			invalid := schema(name).Validate(v)
			res, answered := do(t, "POST", s.URL+path, body, "Content-Type", "application/json")
			if (invalid == nil) != (res.StatusCode < 300) {
				t.Errorf("%s %s\nschema: %v\nroute: %d %s", name, body, invalid, res.StatusCode, answered)
			}
		}
	}
}
