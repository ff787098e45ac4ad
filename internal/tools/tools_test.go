package tools

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// lines is a journal that keeps what was written, one entry per Write.
type lines struct {
	mu   sync.Mutex
	list []string
	fail bool
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail {
		return 0, io.ErrShortWrite
	}
	l.list = append(l.list, string(b))
	return len(b), nil
}

// invoke calls a tool as the server does, and also returns the new shared state.
func invoke(t *testing.T, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, json.RawMessage, error) {
	t.Helper()
	if call.Key == "" {
		call.Thread, call.Run, call.ID, call.Key = "thread", "run", "call", "k"
	}
	call.Name = tool.Spec().Name
	state := call.State
	var failed error
	ctx := holdfast.ContextWithCall(t.Context(), call, func(u holdfast.StateUpdate) {
		state, failed = u(state)
	})
	result, err := tool.Call(ctx, call)
	return result, state, errors.Join(err, failed)
}

func args(v string) holdfast.ToolCall { return holdfast.ToolCall{Arguments: json.RawMessage(v)} }

func clock() time.Time { return time.Date(2026, 3, 1, 23, 30, 0, 0, time.UTC) }

func TestBuiltin(t *testing.T) {
	names := func(tools []holdfast.Tool) []string {
		var out []string
		for _, tool := range tools {
			s := tool.Spec()
			if s.Description == "" || !json.Valid(s.Parameters) {
				t.Errorf("%s is not described", s.Name)
			}
			out = append(out, s.Name)
		}
		return out
	}
	plain := []string{"current_time", "calculate", "wait", "lookup", "ask_person", "update_plan", "request_approval"}
	if got := names(Builtin(clock, 0, nil)); !slices.Equal(got, append(slices.Clip(plain), "carry_out")) {
		t.Errorf("got %v", got)
	}
	if got := names(Builtin(clock, 0, &lines{})); !slices.Equal(got, append(plain, "charge_card", "carry_out")) {
		t.Errorf("with a journal: got %v", got)
	}
}

func TestResults(t *testing.T) {
	tests := []struct {
		tool holdfast.Tool
		args string
		want string // the text, or the error if it is one
	}{
		{CurrentTime(clock), `{}`, `{"time":"2026-03-01T23:30:00Z","weekday":"Sunday","timezone":"UTC"}`},
		{
			CurrentTime(clock),
			`{"timezone":"Asia/Tokyo"}`,
			`{"time":"2026-03-02T08:30:00+09:00","weekday":"Monday","timezone":"Asia/Tokyo"}`,
		},
		{
			CurrentTime(clock),
			`{"timezone":"Mars"}`,
			`there is no time zone "Mars": use an IANA name like Europe/Berlin`,
		},
		{Calculate(), `{"expression":"6*7"}`, `42`},
		{Calculate(), `{"expression":"1/0"}`, `"1/0" cannot be computed: division by zero at character 2`},
		{
			Calculate(),
			`{"sum":1}`,
			`the arguments of calculate are not valid, nothing was run: "expression" is missing; ` +
				`"sum" is not a known member`,
		},
		{
			Lookup(),
			`{"term":" Fences "}`,
			`The right to write to a thread: an epoch and a nonce, compared inside every write.`,
		},
		{Wait(), `{"seconds":61}`, `seconds must be between 0 and 60, not 61`},
		{Wait(), `{"seconds":-1}`, `seconds must be between 0 and 60, not -1`},
		{Wait(), `{"seconds":0}`, `Waited 0 seconds.`},
	}
	for _, tt := range tests {
		result, _, err := invoke(t, tt.tool, args(tt.args))
		got := result.Text
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s %s:\ngot  %s\nwant %s", tt.tool.Spec().Name, tt.args, got, tt.want)
		}
	}
}

func TestLookupListsItsTerms(t *testing.T) {
	_, _, err := invoke(t, Lookup(), args(`{"term":"banana"}`))
	if err == nil || !strings.Contains(err.Error(), `"banana"`) ||
		!strings.Contains(err.Error(), "pending write, record, run, thread") {
		t.Errorf("got %v", err)
	}
}

func TestWaitObeysItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if _, _, err := invoke(t, Wait(), args(`{"seconds":2.5}`)); err != nil ||
			time.Since(begun) != 2500*time.Millisecond {
			t.Errorf("waited %s, %v", time.Since(begun), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := Wait().Call(ctx, args(`{"seconds":50}`)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if limit := Wait().Spec().Timeout; limit <= maxWait {
			t.Errorf("the timeout %s would cut the longest wait", limit)
		}
	})
}

func TestEvaluate(t *testing.T) {
	tests := []struct{ give, want string }{
		{"1 + 2 * 3", "7"}, {"(1 + 2) * 3", "9"}, {"2^3^2", "512"}, {"-2^2", "-4"}, {"2^-1", "0.5"}, {"2 ** 3", "8"},
		{"--3", "3"}, {"+4", "4"}, {"7 % 4", "3"}, {"-7 % 4", "-3"}, {"8 / 4 / 2", "1"}, {"10 - 4 - 3", "3"},
		{"0.1 + 0.2", "0.3"}, {".5 + 1.", "1.5"}, {"6 × 7 ÷ 2 − 1", "20"}, {"2^70", "1.18059162071741e+21"},
		{"10^15", "1000000000000000"}, {"1/3", "0.333333333333333"}, {"0 * -1", "0"}, {"1 / 10^7", "1e-07"},
		{"", "it ends where a number is expected"},
		{"1 +", "it ends where a number is expected"},
		{"(1 + 2", "the ( at character 1 is not closed"},
		{"1)", "the ) at character 2 has no ("},
		{"(1 2)", "'2' at character 4 is not expected"},
		{"2 x 3", "'x' at character 3 is not expected"},
		{"* 3", "'*' at character 1 is not expected"},
		{"1.2.3", `"1.2.3" at character 1 is not a number`},
		{"5 % 0", "division by zero at character 3"},
		{"(0-8)^(1/3)", "the result is not a real number"},
		{"10^400", "the result is too large"},
		{"1\x00", `'\x00' at character 2 is not expected`},
		{strings.Repeat("(", 200) + "1", "it is nested more than 100 deep"},
		{strings.Repeat("2^", 200) + "1", "it is nested more than 100 deep"},
		{strings.Repeat("1+", 501) + "1", "it is longer than 1000 characters"},
	}
	for _, tt := range tests {
		v, err := evaluate(tt.give)
		got := format(v)
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.give, got, tt.want)
		}
	}
}

func FuzzEvaluate(f *testing.F) {
	for _, s := range []string{"1+2*(3-4)^5%6", "((((", "1e5", "--−÷", "9^9^9^9", "٣"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		if v, err := evaluate(expression); err == nil {
			if _, err := evaluate(strings.NewReplacer("e+", "*10^", "e-", "*10^-").Replace(format(v))); err != nil {
				t.Errorf("%q is %s, which cannot be read: %v", expression, format(v), err)
			}
		}
	})
}

func TestAskPerson(t *testing.T) {
	const question = `{"question":"Tea?","choices":["yes","no"]}`
	_, _, err := invoke(t, AskPerson(), args(question))
	var ask *holdfast.Interrupt
	if !errors.As(err, &ask) || ask.Reason != "input_required" || ask.Message != "Tea?" {
		t.Fatalf("got %v, want a question", err)
	}
	const schema = `{"properties":{"answer":{"description":"Tea?","enum":["yes","no"],"type":"string"}},` +
		`"required":["answer"],"type":"object"}`
	if string(ask.ResponseSchema) != schema {
		t.Errorf("got %s", ask.ResponseSchema)
	}
	tests := []struct {
		payload, want string
		failed        bool
	}{
		{`"yes"`, "yes", false},
		{`{"answer":"no"}`, "no", false},
		{`{"answer":42}`, "42", false},
		{`{"approved": true}`, `{"approved":true}`, false},
		{`[1, 2]`, "[1,2]", false},
		{`null`, "The person gave no answer.", true},
		{``, "The person gave no answer.", true},
		{`" "`, "The person gave no answer.", true},
		{`{"answer":null}`, "The person gave no answer.", true},
	}
	for _, tt := range tests {
		call := args(question)
		call.Answer = &holdfast.Answer{Payload: json.RawMessage(tt.payload)}
		got, _, err := invoke(t, AskPerson(), call)
		if err != nil || got.Text != tt.want || got.Failed != tt.failed {
			t.Errorf("%s: got %+v, %v", tt.payload, got, err)
		}
	}
	if _, _, err := invoke(t, AskPerson(), args(`{"question":" "}`)); err == nil || errors.As(err, &ask) {
		t.Errorf("an empty question: got %v", err)
	}
}

func TestUpdatePlan(t *testing.T) {
	const give = `{"title":"Trip","steps":[{"title":"pack","done":true},{"title":"go","done":false}]}`
	const want = `"plan":{"title":"Trip","steps":[{"title":"pack","done":true},{"title":"go","done":false}]}`
	tests := []struct{ args, state, want string }{
		{give, ``, `{` + want + `}`},
		{give, `null`, `{` + want + `}`},
		{give, `{"other":[1],"plan":{"title":"old"}}`, `{"other":[1],` + want + `}`},
		{`{"title":"T","steps":null}`, `{}`, `{"plan":{"title":"T","steps":[]}}`},
	}
	for _, tt := range tests {
		call := args(tt.args)
		call.State = json.RawMessage(tt.state)
		_, state, err := invoke(t, UpdatePlan(), call)
		if err != nil || string(state) != tt.want {
			t.Errorf("%s on %s: got %s, %v", tt.args, tt.state, state, err)
		}
	}
	call := args(give)
	call.State = json.RawMessage(`[1]`)
	if _, _, err := invoke(t, UpdatePlan(), call); err == nil {
		t.Error("a state that is a list: no error")
	}
	if _, err := UpdatePlan().Call(t.Context(), args(give)); !errors.Is(err, holdfast.ErrNoCall) {
		t.Errorf("outside a call: got %v", err)
	}
}

func TestCharge(t *testing.T) {
	var journal lines
	tool := Charge(&journal)
	if tool.Spec().Effect != holdfast.EffectOnce {
		t.Error("a charge must be started only once")
	}
	result, _, err := invoke(t, tool, args(`{"amount":12.5,"currency":"eur"}`))
	if err != nil || result.Text != "Charged 12.50 EUR." {
		t.Errorf("got %+v, %v", result, err)
	}
	for _, bad := range []string{`{"amount":0,"currency":"EUR"}`, `{"amount":1,"currency":"euro"}`,
		`{"amount":1,"currency":"E\nR"}`} {
		if _, _, err := invoke(t, tool, args(bad)); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
	if want := []string{"charge key=k amount=12.50 currency=EUR\n"}; !slices.Equal(journal.list, want) {
		t.Errorf("got %q", journal.list)
	}
}

func TestJournal(t *testing.T) {
	var journal lines
	for _, tool := range Builtin(clock, 0, &journal) {
		switch tool.Spec().Name {
		case "calculate":
			_, _, _ = invoke(t, tool, args(`{"expression":"1"}`))
			call := args(`{"expression":"x"}`)
			call.Thread, call.Run, call.ID, call.Key = "a b", "r", "c\n", "k"
			_, _, _ = invoke(t, tool, call)
		case "ask_person":
			_, _, _ = invoke(t, tool, args(`{"question":"?"}`))
		}
	}
	want := []string{
		"tool start name=calculate thread=thread run=run call=call key=k\n",
		"tool end name=calculate thread=thread run=run call=call key=k outcome=ok\n",
		"tool start name=calculate thread=\"a b\" run=r call=\"c\\n\" key=k\n",
		"tool end name=calculate thread=\"a b\" run=r call=\"c\\n\" key=k outcome=failed\n",
		"tool start name=ask_person thread=thread run=run call=call key=k\n",
		"tool end name=ask_person thread=thread run=run call=call key=k outcome=asked\n",
	}
	if !slices.Equal(journal.list, want) {
		t.Errorf("got  %q\nwant %q", journal.list, want)
	}
	journal.fail = true
	if _, _, err := invoke(t, Journal(Calculate(), &journal), args(`{"expression":"1"}`)); err == nil {
		t.Error("a journal that cannot be written: no error")
	}
}

// TestPace: paced tools that run in parallel finish one after another, and a cancelled
// one has run nothing.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal := &lines{}
		seen := map[time.Duration]bool{}
		for _, tool := range Builtin(time.Now, time.Second, journal) {
			if name := tool.Spec().Name; name != "lookup" && name != "calculate" && name != "charge_card" {
				continue
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			begin := time.Now()
			_, _ = tool.Call(ctx, holdfast.ToolCall{Name: tool.Spec().Name, Arguments: []byte(`{}`)})
			if took := time.Since(begin); took < time.Second || seen[took] {
				t.Errorf("%s took %s", tool.Spec().Name, took)
			}
			seen[time.Since(begin)] = true
			stop := errors.New("stop")
			cancel(stop)
			if _, err := tool.Call(ctx, holdfast.ToolCall{Name: tool.Spec().Name}); !errors.Is(err, stop) {
				t.Errorf("%s went on: %v", tool.Spec().Name, err)
			}
		}
	})
}
