package loop_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/threads"
)

// breaksOff is a model that thinks, says a few words and begins a call, and then fails, n times; it
// answers "fine" after that. It notes what it is shown.
func breaksOff(n int, retryable bool, shown *[]string) holdfast.Agent {
	model := holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		*shown = append(*shown, roles(req.Messages))
		return func(yield func(holdfast.Delta, error) bool) {
			if n--; n < 0 {
				yield(holdfast.Delta{Text: "fine", Finish: holdfast.FinishStop}, nil)
				return
			}
			_ = yield(holdfast.Delta{Reasoning: "hm"}, nil) && yield(holdfast.Delta{Text: "I was "}, nil) &&
				yield(holdfast.Delta{Text: "about to"}, nil) &&
				yield(holdfast.Delta{Call: &holdfast.CallDelta{ID: "c1", Name: "ping", Arguments: `{"a`}}, nil) &&
				yield(holdfast.Delta{}, &holdfast.ModelError{
					Kind:      failure.Cut,
					Retryable: retryable,
					Public:    "It broke.",
					Err:       errors.New("broke"),
				})
		}
	})
	pong := looptest.Tool("ping", holdfast.EffectPure, func(context.Context) (string, error) { return "pong", nil })
	return holdfast.Agent{Name: "a", Model: model, Tools: []holdfast.Tool{pong}}
}

// halfAnswer is what is kept of such an answer.
var halfAnswer = []string{"reasoning:hm", "assistant:I was about to"}

// wantShown checks what clients show: those that were there, and those that come later in
// either dialect, by their own marks.
func wantShown(t *testing.T, e *looptest.Engine, events []agui.Event, want ...string) {
	t.Helper()
	all := strings.Join(want, "|")
	if got := strings.Join(looptest.Reduce(events), "|"); events != nil && got != all {
		t.Errorf("who was there shows\n%s, want\n%s", got, all)
	}
	for _, dialect := range []agui.Dialect{agui.DialectV1, agui.DialectLegacy} {
		reply, err := e.Owner.Attach(t.Context(), looptest.Alice, "t", dialect)
		later := looptest.Collect(t, reply, err)
		if got := strings.Join(looptest.Reduce(later), "|"); got != all {
			t.Errorf("in dialect %d, who comes later shows\n%s, want\n%s", dialect, got, all)
		}
		for _, m := range later[1].(agui.MessagesSnapshot).Messages {
			if half := string(m.Content) == `"I was about to"` ||
				string(m.Content) == `"hm"`; half != thread.Failed(&m) {
				t.Errorf("in dialect %d, marked %v: %s", dialect, !half, m.AppendJSON(nil))
			}
		}
	}
	looptest.WantTexts(t, e, "t", want...)
}

// failedOnce returns an engine on whose thread "t" the first answer has failed, and that run's
// events.
func failedOnce(
	t *testing.T, shown *[]string, change func(*holdfast.Agent),
) (*looptest.Engine, *memstore.Store, []agui.Event) {
	t.Helper()
	db, agent := memstore.New(), breaksOff(1, false, shown)
	if change != nil {
		change(&agent)
	}
	e := looptest.Start(t, db, nil, agent)
	events := looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
	looptest.Failed(t, events, codes.ModelFailed)
	return e, db, events
}

// screen returns the messages that a stock client sends back after these events.
func screen(events []agui.Event) []agui.Message {
	var messages []agui.Message
	for _, ev := range events {
		if s, ok := ev.(agui.MessagesSnapshot); ok {
			messages = s.Messages
		}
	}
	return messages
}

// TestFailedAnswerStays: what a model had said when its run failed stays for everybody, with a
// mark; half a call does not. The model is asked as if nothing had been said.
func TestFailedAnswerStays(t *testing.T) {
	var shown []string
	e, db, events := failedOnce(t, &shown, nil)
	wantShown(t, e, events, append([]string{"user:go"}, halfAnswer...)...)
	again := looptest.Posted(t, e, looptest.RunInput("t", "r2"))
	looptest.Succeeded(t, again)
	wantShown(t, e, again, append(append([]string{"user:go"}, halfAnswer...), "assistant:fine")...)
	sound(t, db, "t")
	if got := strings.Join(shown, "|"); got != "user|user" {
		t.Errorf("the model was shown %s", got)
	}
}

// TestFailedAnswerIsSentBack: stock clients send the half answer back, with what the person says
// next, or half of it, or without it. None of that is another history.
func TestFailedAnswerIsSentBack(t *testing.T) {
	for name, change := range map[string]func([]agui.Message) []agui.Message{
		"whole":     func(m []agui.Message) []agui.Message { return m },
		"without":   func(m []agui.Message) []agui.Message { return m[:1] },
		"cut short": func(m []agui.Message) []agui.Message { m[2].Content = []byte(`"I was"`); return m },
		"no marks": func(m []agui.Message) []agui.Message {
			for i := range m {
				m[i].Metadata = nil
			}
			return m
		},
	} {
		for _, chat := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				var shown []string
				e, db, events := failedOnce(t, &shown, func(a *holdfast.Agent) {
					a.Policy = holdfast.Policy{Chat: chat, OnUnfinished: "abandon"}
				})
				sent := append(change(screen(events)), looptest.UserSays("u2", "and now?"))
				next := looptest.Posted(t, e, looptest.RunInput("t", "r2", sent...))
				looptest.Succeeded(t, next)
				want := append(append([]string{"user:go"}, halfAnswer...), "user:and now?", "assistant:fine")
				wantShown(t, e, nil, want...)
				sound(t, db, "t")
				if got := strings.Join(onScreen(sent, next), "|"); got != strings.Join(want, "|") {
					t.Errorf("the client shows %s", got)
				}
				if got := strings.Join(shown, "|"); got != "user|user, user" {
					t.Errorf("the model was shown %s", got)
				}
			})
		}
	}
}

// TestRegenerateAfterAFailure: a chat page that asks again for the answer after a failed one
// sends what stands before it, with the failed one or without it.
func TestRegenerateAfterAFailure(t *testing.T) {
	for _, keep := range []int{1, 3} {
		var shown []string
		e, db, events := failedOnce(t, &shown, func(a *holdfast.Agent) { a.Policy.Chat = true })
		looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r2", screen(events)...)))
		wantShown(t, e, nil, append(append([]string{"user:go"}, halfAnswer...), "assistant:fine")...)
		anew := looptest.Posted(t, e, looptest.RunInput("t", "r3", screen(events)[:keep]...))
		looptest.Succeeded(t, anew)
		wantShown(t, e, anew, "user:go", "assistant:fine")
		sound(t, db, "t")
		if said := branched(t, anew); said.ParentMessageID != "u1" {
			t.Errorf("with %d messages it branched at %q", keep, said.ParentMessageID)
		}
	}
}

// TestFailedAttempts: of several tries only the words of the last one stay.
func TestFailedAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown []string
		e := looptest.Start(t, memstore.New(), nil, breaksOff(3, true, &shown))
		events := looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		looptest.Failed(t, events, codes.ModelFailed)
		if len(shown) != 3 {
			t.Fatalf("the model was asked %d times", len(shown))
		}
		wantShown(t, e, events, append([]string{"user:go"}, halfAnswer...)...)
	})
}

// TestWordsBeforeASilentEnd: where no later try has said anything, the words of the one before stay:
// of a model that cannot be shown less, that fails without a word, or that another one stood in for.
func TestWordsBeforeASilentEnd(t *testing.T) {
	words := holdfast.Delta{Text: "I was about to"}
	for name, models := range map[string][]*player{
		"nothing less to show": {plays("one", breaks(failure.TooLong, words))},
		"no more words":        {plays("one", breaks(failure.Cut, words), breaks(failure.Cut), breaks(failure.Quota))},
		"another model":        {plays("one", breaks(failure.Quota, words)), plays("two", breaks(failure.Auth))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := memstore.New()
				e := looptest.Start(t, db, nil, chained(models...))
				events := looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
				looptest.Failed(t, events, codes.ModelFailed)
				wantShown(t, e, events, "user:go", "assistant:I was about to")
				sound(t, db, "t")
			})
		})
	}
}

// TestGivenUpAnswerStays: the words of the last owner stay when nobody takes the run over any
// more, and the run can be continued.
func TestGivenUpAnswerStays(t *testing.T) {
	for name, servers := range map[string]int{"gave up": 1 + owner.MaxRetaken, "not recovered": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := memstore.New()
				words := holdfast.ModelFunc(func(ctx context.Context,
					_ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
					return func(yield func(holdfast.Delta, error) bool) {
						_ = yield(holdfast.Delta{Reasoning: "hm"}, nil) &&
							yield(holdfast.Delta{Text: "I was about to"}, nil) &&
							yield(holdfast.Delta{Call: &holdfast.CallDelta{ID: "c1", Name: "ping", Arguments: `{"a`}},
								nil)
						<-ctx.Done()
					}
				})
				killed(t, shared, servers, holdfast.Agent{Name: "a", Model: words})
				last := looptest.Start(t, shared, func(c *looptest.Config) { c.Recover = servers > 1 },
					holdfast.Agent{Name: "a", Model: looptest.Say(holdfast.Delta{Text: "fine"})})
				time.Sleep(4 * time.Second)
				synctest.Wait()
				if info := looptest.Must(last.Keeper.Thread(t.Context(), looptest.Alice,
					"t"))(t); info.Status != threads.StatusStopped {
					t.Fatalf("the thread is %s", info.Status)
				}
				wantShown(t, last, nil, append([]string{"user:go"}, halfAnswer...)...)
				sound(t, shared, "t")
				looptest.Succeeded(t, looptest.Posted(t, last, looptest.RunInput("t", "r2")))
				wantShown(t, last, nil, append(append([]string{"user:go"}, halfAnswer...), "assistant:fine")...)
				sound(t, shared, "t")
			})
		})
	}
}

// TestFailedAnswerTravels: forks have the failed answer, and going back to before it leaves it.
func TestFailedAnswerTravels(t *testing.T) {
	var shown []string
	e, db, events := failedOnce(t, &shown, nil)
	forked := looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t", threads.Travel{Thread: "f"}))(t)
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput(forked.Thread.ID, "r2")))
	looptest.WantTexts(t, e, forked.Thread.ID, append(append([]string{"user:go"}, halfAnswer...), "assistant:fine")...)
	looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Message: screen(events)[2].ID}))(t)
	looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r4")))
	looptest.WantTexts(t, e, "t", append(append([]string{"user:go"}, halfAnswer...), "assistant:fine")...)
	looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Message: "u1"}))(t)
	looptest.WantTexts(t, e, "t", "user:go")
	sound(t, db, "t")
	if got := strings.Join(shown, "|"); got != "user|user|user" {
		t.Errorf("the model was shown %s", got)
	}
}
