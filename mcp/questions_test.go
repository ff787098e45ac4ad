package mcp_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/mcp"
)

// asks is an answer of the fake that asks two questions.
const asks = `{"resultType":"input_required","requestState":"state <1>","inputRequests":{` +
	`"b":{"method":"elicitation/create","params":{"mode":"url","message":"Please log ` +
	`in.","url":"https://example.com/login","elicitationId":"e1"}},` +
	`"a":{"method":"elicitation/create","params":{"message":"Which ` +
	`size?","requestedSchema":{"type":"object","required":["size"],"properties":{"size":{"type":"integer"}}}}}}}`

// talk is a call in the course of its questions, as the engine makes it: each time in
// another process.
type talk struct {
	t    *testing.T
	o    mcp.Options
	tool string
	// server is where the call is made each time; nil means that each time is another
	// process.
	server *mcp.Server
	call   holdfast.ToolCall
	asked  *holdfast.Interrupt
}

func newTalk(t *testing.T, f *fake, o mcp.Options) *talk {
	o.URL = f.URL
	return &talk{
		t:    t,
		o:    o,
		tool: "srv_work",
		call: holdfast.ToolCall{ID: "c1", Key: "key1", Arguments: json.RawMessage(`{"n":1}`)},
	}
}

// next makes the call, in a process of its own.
func (k *talk) next() (holdfast.ToolResult, error) {
	k.t.Helper()
	s := k.server
	if s == nil {
		s = open(k.t, k.o)
		defer s.Close()
	}
	ctx, recorded := agenttest.Context(k.t)
	r, err := call(k.t, ctx, tool(k.t, s, k.tool), k.call)
	if kept := recorded.Kept("c1"); kept != nil {
		k.call.Kept = kept
	}
	k.asked = nil
	errors.As(err, &k.asked)
	return r, err
}

// answer gives an answer to the question that was asked last, and makes the call again.
func (k *talk) answer(payload string) (holdfast.ToolResult, error) {
	k.t.Helper()
	if k.asked == nil {
		k.t.Fatal("nothing was asked")
	}
	k.call.Answer = &holdfast.Answer{
		Reason:   k.asked.Reason,
		Payload:  json.RawMessage(payload),
		Asked:    k.asked.Metadata,
		Declined: payload == "",
	}
	return k.next()
}

// question checks the question that was asked last.
func (k *talk) question(message, metadata string) {
	k.t.Helper()
	if k.asked == nil || !strings.HasPrefix(k.asked.Message, message) || !has(string(k.asked.Metadata), metadata) ||
		!k.asked.TellDeclined || k.asked.Reason != "input_required" {
		k.t.Fatalf("asked: %+v, want %s %s", k.asked, message, metadata)
	}
}

// asking is a fake that asks as often as there are demands, and then answers.
func asking(t *testing.T, demands ...string) *fake {
	var n atomic.Int32
	return newFake(t, oneTool, func(w http.ResponseWriter, m message) {
		if n := int(n.Add(1)); n <= len(demands) {
			m.result(w, demands[n-1])
			return
		}
		m.result(w, `{"content":[{"type":"text","text":"done"}]}`)
	})
}

// TestQuestions: each question is asked, each time in another process, and with the answers
// the same call goes on.
func TestQuestions(t *testing.T) {
	t.Parallel()
	for _, effect := range []holdfast.Effect{holdfast.EffectPure, holdfast.EffectIdempotent, holdfast.EffectOnce} {
		t.Run(string(effect), func(t *testing.T) {
			f := asking(t, asks)
			k := newTalk(t, f, mcp.Options{Effect: effect})
			_, _ = k.next()
			k.question("Which size?", `"server":"srv","tool":"srv_work","mode":"form","key":"a"`)
			if got := string(k.asked.ResponseSchema); !has(got, `"size"`) {
				t.Errorf("the schema is %s", got)
			}
			_, _ = k.answer(`{"size":"large"}`)
			k.question("Which size? (The answer before could not be used", `"key":"a"`)
			_, _ = k.answer(`{"size":9007199254740993}`)
			k.question("Please log in.", `"mode":"url","url":"https://example.com/login","key":"b"`)
			_, _ = k.next() // the process died before the question was stored
			k.question("Please log in.", `"key":"b"`)
			r, err := k.answer(`{}`)
			if r.Text != "done" || err != nil {
				t.Fatalf("got %+v, %v", r, err)
			}
			calls := f.got("tools/call")
			if len(calls) != 2 {
				t.Fatalf("it was called %d times", len(calls))
			}
			last := calls[1].Params
			if string(last["requestState"]) != `"state <1>"` &&
				string(last["requestState"]) != `"state \u003c1\u003e"` {
				t.Errorf("the state is %s", last["requestState"])
			}
			if got, want := string(last["inputResponses"]),
				`{"a":{"action":"accept","content":{"size":9007199254740993}},"b":{"action":"accept"}}`; got != want {
				t.Errorf("the answers are %s, want %s", got, want)
			}
			if string(last["arguments"]) != `{"n":1}` ||
				!has(string(last["_meta"]), `"io.github.holdfast-agents/key":"key1"`) {
				t.Errorf("it is another call: %s", last)
			}
		})
	}
}

// TestDeclined: the server is told that a person declined.
func TestDeclined(t *testing.T) {
	t.Parallel()
	f := asking(t, asks)
	k := newTalk(t, f, mcp.Options{})
	_, _ = k.next()
	_, _ = k.answer(``)
	k.question("Please log in.", `"key":"b"`)
	if r, err := k.answer(`{"action":"cancel"}`); r.Text != "done" || err != nil {
		t.Fatalf("got %+v, %v", r, err)
	}
	if got := string(f.got("tools/call")[1].Params["inputResponses"]); got !=
		`{"a":{"action":"decline"},"b":{"action":"cancel"}}` {
		t.Errorf("the answers are %s", got)
	}
}

// TestOtherAnswers: an answer to somebody else's question, or to one of an earlier round, is
// not passed on.
func TestOtherAnswers(t *testing.T) {
	t.Parallel()
	f := asking(t, asks, asks)
	k := newTalk(t, f, mcp.Options{})
	k.call.Answer = &holdfast.Answer{Reason: holdfast.ReasonToolCall, Payload: json.RawMessage(`{"approved":true}`)}
	_, _ = k.next()
	k.question("Which size?", `"round":1`)
	first := *k.asked
	_, _ = k.answer(`{"size":1}`)
	_, _ = k.answer(`{}`)
	k.question("Which size?", `"round":2`)
	k.asked.Metadata = first.Metadata
	_, _ = k.answer(`{"size":2}`)
	k.question("Which size?", `"round":2`)
	if n := len(f.got("tools/call")); n != 2 {
		t.Errorf("it was called %d times", n)
	}
}

// TestSending: while an answer of a once call may be on its way, the call is in doubt, and
// others are made again. If the answer was certainly not sent, it is sent later.
func TestSending(t *testing.T) {
	t.Parallel()
	for effect, want := range map[holdfast.Effect]string{holdfast.EffectPure: fine, holdfast.EffectIdempotent: fine,
		holdfast.EffectOnce: unknown} {
		t.Run(string(effect), func(t *testing.T) {
			var calls atomic.Int32
			f := newFake(t, oneTool, func(w http.ResponseWriter, m message) {
				switch calls.Add(1) {
				case 1:
					m.result(w, strings.Replace(asks, `"b"`, `"a"`, 1)) // only one question
				case 2:
					m.error(w, 429, -32000, "later")
				case 3:
					m.cut(w)
				default:
					m.result(w, `{"content":[]}`)
				}
			})
			k := newTalk(t, f, mcp.Options{Effect: effect})
			_, _ = k.next()
			if got := fate(k.answer(`{"size":1}`)); got != not {
				t.Errorf("refused: the call is %s", got)
			}
			if got := fate(k.next()); got != unknown {
				t.Errorf("cut off: the call is %s", got)
			}
			if got := fate(k.next()); got != want {
				t.Errorf("after that the call is %s, want %s", got, want)
			}
		})
	}
}

// TestCalledAgain: a server that only wants to be called again is, with its state, and not
// for ever; and one that asks for what it was not offered gets an error.
func TestCalledAgain(t *testing.T) {
	t.Parallel()
	f := asking(t, `{"resultType":"input_required","requestState":"later"}`)
	k := newTalk(t, f, mcp.Options{})
	if r, err := k.next(); r.Text != "done" || err != nil {
		t.Fatalf("got %+v, %v", r, err)
	}
	if last := f.got("tools/call")[1].Params; string(last["requestState"]) != `"later"` ||
		last["inputResponses"] != nil {
		t.Errorf("the second call has %s", last)
	}
	for _, demand := range []string{
		`{"resultType":"input_required","inputRequests":{"a":{"method":"sampling/createMessage","params":{}}}}`,
		`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":7}}}`,
		`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"?",` +
			`"requestedSchema":7}}}}`,
		`{"resultType":"input_required","requestState":"` + strings.Repeat("x", 64<<10) + `"}`,
	} {
		f := asking(t, demand)
		k := newTalk(t, f, mcp.Options{})
		if r, err := k.next(); fate(r, err) != failed || k.asked != nil {
			t.Errorf("%.100s: got %+v, %v", demand, r, err)
		}
	}
}
