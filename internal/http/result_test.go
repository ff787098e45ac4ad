package http

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
)

// record is a frame of the log.
func record(ev agui.Event) agui.Frame { return agui.Frame{ID: "1-x", Data: agui.Append(nil, ev)} }

func records(evs ...agui.Event) []agui.Frame {
	frames := make([]agui.Frame, len(evs))
	for i, ev := range evs {
		frames[i] = record(ev)
	}
	return frames
}

// posting is an engine that answers every POST with the batches.
func posting(batches ...any) *fake {
	return &fake{
		post: func(context.Context, holdfast.Principal, string, *agui.RunAgentInput) (*agui.Reply, error) {
			return reply(batches...), nil
		},
		shared: `{"of":"thread"}`,
	}
}

var jsonHeaders = []string{"Content-Type", "application/json", "Accept", "application/json"}

func TestRunAsJSON(t *testing.T) {
	tokens := int64(7)
	usage := []holdfast.Usage{{Model: "m", InputTokens: &tokens}}
	started := agui.RunStarted{ThreadID: "t", RunID: "r"}
	finished := func(o *agui.Outcome) agui.RunFinished {
		return agui.RunFinished{ThreadID: "t", RunID: "echoed", Outcome: o, Usage: usage}
	}
	state := func(s string) agui.StateSnapshot { return agui.StateSnapshot{Snapshot: json.RawMessage(s)} }
	const messages = `"messages":[{"id":"m","role":"user","content":"hi"}]`
	const used = `"usage":[{"model":"m","inputTokens":7}]`
	for name, c := range map[string]struct {
		stream []any
		want   string
	}{
		"success": {
			[]any{records(started), []agui.Frame{}, records(agui.TextMessageStart{MessageID: "a", Role: "assistant"}),
				records(finished(nil))},
			`{"outcome":"success","runId":"r","threadId":"t",` + messages + `,"state":{"of":"thread"},` + used + `}`,
		},
		"success with a result": {
			[]any{records(started, agui.RunFinished{ThreadID: "t", RunID: "r", Result: json.RawMessage(`{"a":[1]}`)})},
			`{"outcome":"success","runId":"r","threadId":"t",` + messages +
				`,"result":{"a":[1]},"state":{"of":"thread"},"usage":[]}`,
		},
		"success, frontend calls open": {
			[]any{records(started, state(`{"n":1}`)),
				records(state(`{"n":2}`),
					finished(&agui.Outcome{Type: agui.OutcomeSuccess, PendingToolCallIDs: []string{"c1"}}))},
			`{"outcome":"success","runId":"r","threadId":"t",` + messages + `,"state":{"of":"thread"},` + used +
				`,"pendingToolCallIds":["c1"]}`,
		},
		"interrupt": {
			[]any{records(started, state(`{}`), finished(&agui.Outcome{Type: agui.OutcomeInterrupt,
				Interrupts: []agui.Interrupt{{ID: "i", Reason: "confirmation", Message: "Sure?"}}}))},
			`{"outcome":"interrupt","runId":"r","threadId":"t",` + messages + `,"state":{"of":"thread"},` + used +
				`,"interrupts":[{"id":"i","reason":"confirmation","message":"Sure?"}]}`,
		},
		"cancelled": {
			[]any{records(started, state(`{}`), finished(&agui.Outcome{Type: agui.OutcomeCancelled}))},
			`{"outcome":"cancelled","runId":"r","threadId":"t",` + messages + `,"state":{"of":"thread"},` + used + `}`,
		},
		"a run that was accepted and failed": {
			[]any{records(started, state(`{}`),
				agui.RunError{Message: "The model could not answer.", Code: "model_failed", Usage: usage})},
			`{"outcome":"error","runId":"r","threadId":"t",` + messages + `,"state":{"of":"thread"},` + used +
				`,"error":{"code":"model_failed","message":"The model could not answer."}}`,
		},
		"a run whose error has a text for people": {
			[]any{records(started, state(`{}`),
				agui.NewRunError(holdfast.Errorf("cut_off", "It died.").WithHint("POST again.")))},
			`{"outcome":"error","runId":"r","threadId":"t",` + messages + `,"state":{"of":"thread"},"usage":[],` +
				`"error":{"code":"cut_off","message":"It died. POST again."}}`,
		},
		"hydrated: nothing was used": {
			[]any{records(started, state(`{}`), agui.RunFinished{ThreadID: "t", RunID: "r"})},
			`{"outcome":"success","runId":"r","threadId":"t",` + messages + `,"state":{"of":"thread"},"usage":[]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, posting(c.stream...), nil)
			res, body := do(t, "POST", s.URL+"/runs", minimal, jsonHeaders...)
			if res.StatusCode != 200 || strings.TrimSpace(body) != c.want {
				t.Errorf("%d\n%s\n%s", res.StatusCode, body, c.want)
			}
			if res.Header.Get("Content-Type") != "application/json" || res.Header.Get("Holdfast-Run") != "r" {
				t.Errorf("%v", res.Header)
			}
		})
	}
}

// TestJSONIsNoDialect: the older dialect has neither the outcome cancelled nor pending
// calls, but the JSON object tells every client.
func TestJSONIsNoDialect(t *testing.T) {
	for accept, want := range map[string]string{"application/json": agui.ProtocolVersion, "text/event-stream": ""} {
		f := posting(records(agui.StateSnapshot{Snapshot: json.RawMessage(`{}`)},
			agui.RunFinished{ThreadID: "t", RunID: "r"}))
		post := f.post
		f.post = func(ctx context.Context, who holdfast.Principal, agent string, in *agui.RunAgentInput) (*agui.Reply,
			error) {
			if in.ProtocolVersion != want {
				t.Errorf("%s: protocolVersion %q", accept, in.ProtocolVersion)
			}
			return post(ctx, who, agent, in)
		}
		do(t, "POST", serve(t, f, nil).URL+"/runs", minimal, "Content-Type", "application/json", "Accept", accept)
	}
}

// TestJSONCannotWait: if the server cannot wait for the end, the run was still accepted,
// and the error says how to get its result.
func TestJSONCannotWait(t *testing.T) {
	begun := records(agui.RunStarted{ThreadID: "t", RunID: "r"})
	for name, c := range map[string]struct {
		f      *fake
		status int
		code   string
	}{
		"shutdown": {posting(begun, holdfast.Errorf(codes.StreamCut, "Attach with its cursor.")), 503,
			codes.StreamCut},
		"store gone": {posting(begun, holdfast.Errorf(codes.StoreUnavailable, "No store.").
			WithHint("Nothing was started.")),
			503, codes.StoreUnavailable},
		"something else":     {posting(begun, errors.New("hunter2")), 500, codes.Internal},
		"an end without end": {posting(begun), 503, codes.StreamCut},
		"history not to read": {&fake{post: posting(begun, records(agui.RunFinished{ThreadID: "t", RunID: "r"})).post,
			err: errors.New("hunter2")},
			500, codes.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			res, body := do(t, "POST", serve(t, c.f, nil).URL+"/runs", minimal, jsonHeaders...)
			var got exchange.ErrorBody
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != c.status || got.Error.Code != c.code ||
				!strings.Contains(got.Error.Hint, "same runId") {
				t.Errorf("%d %s", res.StatusCode, body)
			}
			if want := map[string]any{"threadId": "t", "runId": "r"}; !reflect.DeepEqual(got.Error.Details, want) {
				t.Errorf("details: %v", got.Error.Details)
			}
			if c.status == 503 && res.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			if strings.Contains(body, "hunter2") || strings.Contains(body, "Nothing was started") {
				t.Errorf("%s", body)
			}
		})
	}
}

// TestJSONBeforeAcceptance: before a run is accepted, errors are the usual ones, and a
// run whose answer would not be acceptable is never started.
func TestJSONBeforeAcceptance(t *testing.T) {
	f := &fake{post: func(context.Context, holdfast.Principal, string, *agui.RunAgentInput) (*agui.Reply, error) {
		return nil, holdfast.Errorf(codes.RunInProgress, "Busy.").WithHint("Wait.")
	}}
	s := serve(t, f, nil)
	if res, body := do(t, "POST", s.URL+"/runs", minimal, jsonHeaders...); res.StatusCode != http.StatusConflict ||
		strings.Contains(body, "outcome") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	f.post = func(context.Context, holdfast.Principal, string, *agui.RunAgentInput) (*agui.Reply, error) {
		t.Error("a run was started that cannot be answered")
		return reply(), nil
	}
	res, body := do(t, "POST", s.URL+"/runs", minimal, "Content-Type", "application/json", "Accept", "application/xml")
	if res.StatusCode != http.StatusNotAcceptable || !strings.Contains(body, "text/event-stream") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

// TestJSONClientLeaves: the handler ends when its client leaves; the run belongs to the
// engine and continues.
func TestJSONClientLeaves(t *testing.T) {
	waiting, ended := make(chan struct{}), make(chan struct{})
	f := &fake{
		post: func(ctx context.Context, _ holdfast.Principal, _ string, _ *agui.RunAgentInput) (*agui.Reply, error) {
			return &agui.Reply{ThreadID: "t", RunID: "r", Frames: func(func([]agui.Frame, error) bool) {
				close(waiting)
				<-ctx.Done()
				close(ended)
			}}, nil
		},
	}
	seen := &observed{done: make(chan string, 1)}
	s := serve(t, f, func(c *Config) { c.Observer = seen })
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/runs", strings.NewReader(minimal))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	gone := make(chan error, 1)
	go func() {
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			err = res.Body.Close()
		}
		gone <- err
	}()
	<-waiting
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the client got %v", err)
	}
	<-ended
	if got := <-seen.done; got != "POST /runs 499" {
		t.Errorf("observed %q", got)
	}
}
