package loop_test

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
)

// city is the form of the answers in these tests.
var city = &holdfast.Output{
	Name:   "city",
	Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
}

// enforcing is a model whose provider enforces the form, or says so.
type enforcing struct{ holdfast.Model }

// EnforcesOutput reports whether the form of an answer is enforced.
func (enforcing) EnforcesOutput(*holdfast.ModelRequest) bool { return true }

// answering is a turn of a painter.
func answering(text string) []holdfast.Delta {
	n := int64(5)
	return []holdfast.Delta{
		{Text: text},
		{Usage: &holdfast.Usage{Provider: "p", Model: "m", OutputTokens: &n}, Finish: holdfast.FinishStop},
	}
}

// former is an agent whose answers have a form.
func former(asked *[]*holdfast.ModelRequest, turns ...[]holdfast.Delta) holdfast.Agent {
	return holdfast.Agent{
		Name:         "a",
		Instructions: "Be brief.",
		Output:       city,
		Model:        enforcing{painter(asked, turns...)},
	}
}

// customs are the names of the CUSTOM events of a stream.
func customs(events []agui.Event) (names []string) {
	for _, ev := range events {
		if c, ok := ev.(agui.Custom); ok {
			names = append(names, c.Name)
		}
	}
	return names
}

// TestOutput: an answer that fits is the run's result, for clients that attach later too. The
// model gets the form with the request.
func TestOutput(t *testing.T) {
	var asked []*holdfast.ModelRequest
	e := looptest.Start(t, memstore.New(), nil, former(&asked, answering(`{"city": "Rome"}`)))
	events := looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "where?")))
	if end := looptest.Succeeded(t, events); string(end.Result) != `{"city":"Rome"}` || len(customs(events)) > 0 {
		t.Errorf("the result is %s, with %q", end.Result, customs(events))
	}
	if o := asked[0].Output; o == nil || o.Name != "city" || len(asked) != 1 || len(asked[0].Instructions) != 1 {
		t.Errorf("asked %d times, for %+v", len(asked), o)
	}
	for _, dialect := range []agui.Dialect{agui.DialectV1, agui.DialectLegacy} {
		reply, err := e.Owner.Attach(t.Context(), looptest.Alice, "t", dialect)
		if end := looptest.Succeeded(t, looptest.Collect(t, reply, err)); string(end.Result) != `{"city":"Rome"}` {
			t.Errorf("later the result is %s", end.Result)
		}
	}
}

// TestOutputIsAskedAgain: an answer that does not fit is taken back, and the model is asked
// once more: the same request, with that answer and what is wrong with it at its end. Both
// answers are counted.
func TestOutputIsAskedAgain(t *testing.T) {
	var asked []*holdfast.ModelRequest
	e := looptest.Start(t, memstore.New(), nil,
		former(&asked, answering(`{"town": "Rome"}`), answering(`{"city":"Rome"}`), answering(`{"city":"Paris"}`)))
	events := looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "where?")))
	end := looptest.Succeeded(t, events)
	if string(end.Result) != `{"city":"Rome"}` || !slices.Equal(customs(events), []string{"holdfast.output_retry"}) {
		t.Errorf("the result is %s:\n%s", end.Result, looptest.Show(events))
	}
	if len(end.Usage) != 1 || *end.Usage[0].OutputTokens != 10 {
		t.Errorf("the usage is %+v", end.Usage)
	}
	looptest.WantTexts(t, e, "t", "user:where?", `assistant:{"city":"Rome"}`)
	if got, want := looptest.Reduce(events), []string{
		`assistant:{"city":"Rome"}`,
	}; !slices.Equal(got[len(got)-1:], want) || len(got) != 2 {
		t.Errorf("a client shows %q", got)
	}
	first, second := asked[0], asked[1]
	if n := len(first.Messages); len(second.Messages) != n+2 || second.Messages[n].Text != `{"town": "Rome"}` ||
		second.Messages[n+
			1].Role != holdfast.RoleUser || !strings.Contains(second.Messages[n+1].Text, `"city" is missing`) ||
		second.Attempt != 1 || second.Tail != 2 || len(second.History()) != n ||
		!slices.Equal(first.Instructions, second.Instructions) {
		t.Errorf("asked again with %+v", second)
	}
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r2", looptest.UserSays("u2", "and then?"))))
	if len(asked[2].Messages) != 3 {
		t.Errorf("the next run reads %+v", asked[2].Messages)
	}
}

// TestOutputIsStillWrong: the second answer is kept and marked, and the run ends with an
// error. An empty POST asks again, with that answer and what is wrong with it.
func TestOutputIsStillWrong(t *testing.T) {
	var asked []*holdfast.ModelRequest
	e := looptest.Start(t, memstore.New(), nil,
		former(&asked, answering("Rome"), answering(`{"town":"Rome"}`), answering(`{"city":1}`),
			answering(`{"city":"Rome"}`)))
	events := looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "where?")))
	failed, ok := looptest.LastOf(events).(agui.RunError)
	if !ok || failed.Code != codes.OutputInvalid || !strings.Contains(failed.FullText(), `"city" is missing`) ||
		strings.Contains(failed.Message, "missing") || len(asked) != 2 {
		t.Fatalf("%s", looptest.Show(events))
	}
	looptest.WantTexts(t, e, "t", "user:where?", `assistant:{"town":"Rome"}`)
	raw, err := e.Messages(t.Context(), looptest.Alice, "t")
	if err != nil || !strings.Contains(string(raw[1]), `"misfit":["\"city\" is missing"]`) {
		t.Errorf("%s, %v", raw, err)
	}
	end := looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r2")))
	if string(end.Result) != `{"city":"Rome"}` || len(asked) != 4 {
		t.Errorf("the result is %s after %d requests", end.Result, len(asked))
	}
	texts := make([]string, 0, 5)
	for _, m := range asked[3].Messages {
		texts = append(texts, string(m.Role)+" "+strings.SplitN(m.Text, ".", 2)[0])
	}
	want := []string{
		"user where?",
		`assistant {"town":"Rome"}`,
		"user Your last answer does not have the form that is asked for",
		`assistant {"city":1}`,
		"user Your last answer does not have the form that is asked for",
	}
	if !slices.Equal(texts, want) {
		t.Errorf("the model reads %q", texts)
	}
	looptest.WantTexts(t, e, "t", "user:where?", `assistant:{"town":"Rome"}`, `assistant:{"city":"Rome"}`)
}

// TestOutputThatCannotBeAskedAgain: what the length limit cut off, or a filter held back, is
// not asked again; an answer that happens to fit is one.
func TestOutputThatCannotBeAskedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		finish holdfast.FinishReason
		code   string
		says   string
	}{
		"cut":             {`{"city":"Ro`, holdfast.FinishLength, codes.OutputCut, "cut"},
		"refused":         {"I cannot help with that.", holdfast.FinishFilter, codes.OutputInvalid, "declined"},
		"cut, but whole":  {`{"city":"Rome"}`, holdfast.FinishLength, "", ""},
		"said with calls": {`{"city":"Rome"}`, holdfast.FinishToolCalls, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []*holdfast.ModelRequest
			e := looptest.Start(t, memstore.New(), nil,
				former(&asked, []holdfast.Delta{{Text: c.text}, {Finish: c.finish}}))
			events := looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "where?")))
			if len(asked) != 1 {
				t.Errorf("asked %d times", len(asked))
			}
			if c.code == "" {
				looptest.Succeeded(t, events)
				return
			}
			if failed, ok := looptest.LastOf(events).(agui.RunError); !ok || failed.Code != c.code ||
				!strings.Contains(failed.FullText(), c.says) {
				t.Errorf("%s", looptest.Show(events))
			}
			looptest.WantTexts(t, e, "t", "user:where?", "assistant:"+c.text)
		})
	}
}

// TestOutputBindsNoCalls: what a model says while it calls tools may be anything, and a run
// that leaves calls to the frontend has no result.
func TestOutputBindsNoCalls(t *testing.T) {
	var asked []*holdfast.ModelRequest
	pong := looptest.Tool("ping", holdfast.EffectPure, func(context.Context) (string, error) { return "pong", nil })
	call := []holdfast.Delta{
		{Text: "I look."},
		{Call: &holdfast.CallDelta{Name: "ping", Arguments: "{}"}},
		{Finish: holdfast.FinishToolCalls},
	}
	agent := former(&asked, call, answering(`{"city":"Rome"}`))
	agent.Tools = []holdfast.Tool{pong}
	e := looptest.Start(t, memstore.New(), nil, agent)
	events := looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "where?")))
	if end := looptest.Succeeded(t, events); string(end.Result) != `{"city":"Rome"}` || len(customs(events)) > 0 {
		t.Errorf("the result is %s", end.Result)
	}
	agent.Tools = nil
	agent.Model = enforcing{painter(&asked, call)}
	e = looptest.Start(t, memstore.New(), nil, agent)
	in := looptest.RunInput("t", "r1", looptest.UserSays("u1", "where?"))
	in.Tools = []agui.Tool{{Name: "ping"}}
	if end := looptest.Succeeded(t, looptest.Posted(t, e, in)); end.Result != nil ||
		len(end.Outcome.PendingToolCallIDs) != 1 {
		t.Errorf("%+v", end)
	}
}

// TestCrashBetweenTheAnswers: a process dies after it took the first answer back, in the
// middle of the second. The next one asks the same once more, and not again after that.
func TestCrashBetweenTheAnswers(t *testing.T) {
	for name, last := range map[string]string{"fits": `{"city":"Rome"}`, "does not fit": "Rome"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := memstore.New()
				first := &looptest.Mortal{Store: shared}
				var asked, askedLater []*holdfast.ModelRequest
				one := looptest.Start(t, first, nil,
					former(&asked, answering(`{"town":"Rome"}`), []holdfast.Delta{{Text: `{"ci`}, {Text: "hang"}}))
				if _, err := one.Owner.Post(t.Context(), looptest.Alice, "",
					looptest.RunInput("t", "r1", looptest.UserSays("u1", "where?"))); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				first.Dead.Store(true)
				two := looptest.Start(t, shared, nil, former(&askedLater, answering(last)))
				time.Sleep(10 * time.Second)
				reply, err := two.Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{}, agui.DialectV1)
				events := looptest.Collect(t, reply, err)
				if len(asked) != 2 || len(askedLater) != 1 {
					t.Fatalf("asked %d and %d times", len(asked), len(askedLater))
				}
				if a, b := encoded(t, asked[1].Messages), encoded(t, askedLater[0].Messages); a != b {
					t.Errorf("asked with\n%s, then with\n%s", a, b)
				}
				if name == "fits" {
					if end := looptest.Succeeded(t, events); string(end.Result) != last {
						t.Errorf("the result is %s", end.Result)
					}
				} else if failed, ok := looptest.LastOf(events).(agui.RunError); !ok ||
					failed.Code != codes.OutputInvalid {
					t.Errorf("%s", looptest.Show(events))
				}
			})
		})
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestOutputAfterAFailure: between the two answers a call may also fail and be tried again,
// or be cancelled.
func TestOutputAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []*holdfast.ModelRequest
		e := looptest.Start(t, memstore.New(), nil,
			former(&asked, answering("Rome"), []holdfast.Delta{{Text: `{"ci`}, {Text: "break"}},
				answering(`{"city":"Rome"}`)))
		events := looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "where?")))
		if end := looptest.Succeeded(t, events); string(end.Result) != `{"city":"Rome"}` ||
			!slices.Equal(customs(events), []string{"holdfast.output_retry", "holdfast.retry"}) {
			t.Errorf("%s", looptest.Show(events))
		}
		if a, b := encoded(t, asked[1].Messages), encoded(t, asked[2].Messages); a != b || asked[2].Attempt != 2 {
			t.Errorf("asked with\n%s, then with\n%s", a, b)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var asked []*holdfast.ModelRequest
		e := looptest.Start(t, memstore.New(), nil,
			former(&asked, answering("Rome"), []holdfast.Delta{{Text: `{"ci`}, {Text: "hang"}},
				answering(`{"city":"Rome"}`)))
		reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "where?")))
		synctest.Wait()
		if _, err := e.Owner.Cancel(t.Context(), looptest.Alice, "t", "r1"); err != nil {
			t.Fatal(err)
		}
		if end, ok := looptest.LastOf(looptest.Collect(t, reply, err)).(agui.RunFinished); !ok || end.Result != nil {
			t.Errorf("%+v", end)
		}
		looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r2", looptest.UserSays("u2", "go on"))))
		if n := len(asked[2].Messages); n != 3 {
			t.Errorf("the next run reads %+v", asked[2].Messages)
		}
	})
}

// TestWrongOutput: an agent whose form cannot be used is refused at the start.
func TestWrongOutput(t *testing.T) {
	for want, output := range map[string]*holdfast.Output{
		"type: object":      {Schema: json.RawMessage(`{"type":"array"}`)},
		"letters":           {Name: "a b", Schema: json.RawMessage(`{"type":"object"}`)},
		"/properties/a/typ": {Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"strin"}}}`)},
	} {
		cfg := looptest.Config{}
		cfg.Store, cfg.NewID = memstore.New(), func(string) string { return "x" }
		cfg.Agents = []holdfast.Agent{
			{
				Name:   "former",
				Output: output,
				Model: holdfast.ModelFunc(func(context.Context,
					*holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
					return nil
				}),
			},
		}
		if _, err := looptest.New(cfg); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "former") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// dyingAfter is a store whose process dies right after a commit with a text.
type dyingAfter struct {
	looptest.Mortal
	after string
}

// Commit implements [store.Committer].
func (d *dyingAfter) Commit(ctx context.Context, c *store.Commit) error {
	err := d.Mortal.Commit(ctx, c)
	for i := range c.Messages {
		if err == nil && strings.Contains(string(c.Messages[i].Data), d.after) {
			d.Dead.Store(true)
		}
	}
	return err
}

// TestCrashBeforeTheError: the process dies between the commit of an answer that is still
// wrong and the end of its run. The next one ends it with the same error, and asks nobody.
func TestCrashBeforeTheError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		first := &dyingAfter{Mortal: looptest.Mortal{Store: shared}, after: `"misfit"`}
		var asked, askedLater []*holdfast.ModelRequest
		agent := former(&asked, answering("Rome"))
		// Without a pause the answer and the end are one commit.
		agent.Middleware = []holdfast.Middleware{
			{
				Name: "acme.slow",
				AfterIteration: func(context.Context, *holdfast.Iteration,
					*holdfast.IterationResult) {
					time.Sleep(time.Second)
				},
			},
		}
		one := looptest.Start(t, first, nil, agent)
		if _, err := one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "where?"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		two := looptest.Start(t, shared, nil, former(&askedLater, answering("Rome")))
		time.Sleep(10 * time.Second)
		reply, err := two.Owner.Events(t.Context(), looptest.Alice, "t", "r1", store.Cursor{}, agui.DialectV1)
		events := looptest.Collect(t, reply, err)
		failed, ok := looptest.LastOf(events).(agui.RunError)
		if !ok || failed.Code != codes.OutputInvalid || !strings.Contains(failed.FullText(), "not JSON") ||
			len(asked) != 2 || len(askedLater) != 0 {
			t.Errorf("asked %d and %d times:\n%s", len(asked), len(askedLater), looptest.Show(events))
		}
		if !slices.Contains(customs(events), "holdfast.takeover") {
			t.Error("nobody took the run over")
		}
		looptest.WantTexts(t, two, "t", "user:where?", "assistant:Rome")
	})
}

// TestOutputOfAFallback: the model that a run falls back to gets the same form, and the
// answer of the first one that it is to correct.
func TestOutputOfAFallback(t *testing.T) {
	var first, second []*holdfast.ModelRequest
	agent := former(&first, answering(`{"town":"Rome"}`), []holdfast.Delta{{Text: `{"ci`}, {Text: "quota"}})
	agent.Fallbacks = []holdfast.Model{painter(&second, answering("```json\n{\"city\":\"Rome\"}\n```"))}
	e := looptest.Start(t, memstore.New(), nil, agent)
	events := looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "where?")))
	if end := looptest.Succeeded(t, events); string(end.Result) != `{"city":"Rome"}` ||
		!slices.Equal(customs(events), []string{"holdfast.output_retry", "holdfast.fallback"}) {
		t.Errorf("%s", looptest.Show(events))
	}
	if a, b := encoded(t, first[1].Messages), encoded(t, second[0].Messages); a != b || second[0].Attempt != 2 {
		t.Errorf("asked with\n%s, then with\n%s", a, b)
	}
	if in := second[0].Instructions; len(in) != 2 || !strings.Contains(in[0], string(city.Schema)) {
		t.Errorf("a model whose provider enforces nothing is told %q", in)
	}
	looptest.WantTexts(t, e, "t", "user:where?", `assistant:{"city":"Rome"}`)
}
