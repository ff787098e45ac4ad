package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware"
)

// Retries of a tool whose attempts have given outcomes, in bubbles in which time passes
// at once.

// trying is a tool with a different outcome for each attempt.
type trying struct {
	effect  holdfast.Effect
	timeout time.Duration
	tries   []tryOutcome
	mu      sync.Mutex // a try that was given up may go on beside the next
	n       int
	keys    []string
	at      []time.Duration
	began   time.Time
}

func (t *trying) Spec() holdfast.ToolSpec {
	return holdfast.ToolSpec{Name: "fetch", Effect: t.effect, Timeout: t.timeout}
}

func (t *trying) Call(ctx context.Context, call holdfast.ToolCall) (holdfast.ToolResult, error) {
	t.mu.Lock()
	t.keys = append(t.keys, call.Key)
	t.at = append(t.at, time.Since(t.began))
	f := t.tries[min(t.n, len(t.tries)-1)]
	t.n++
	t.mu.Unlock()
	return f(ctx, call)
}

// through calls the tool through middleware and returns the notices too.
func (t *trying) through(
	ctx context.Context, chain ...holdfast.Middleware,
) (result holdfast.ToolResult, notices []string, err error) {
	ctx = holdfast.ContextWithRun(ctx, &holdfast.RunContext{Notify: func(_ context.Context, name string,
		value any) error {
		b, err := json.Marshal(value)
		notices = append(notices, name+" "+string(b))
		return err
	}})
	call := func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
		return tool.Call(ctx, call)
	}
	for _, m := range slices.Backward(chain) {
		call = m.Tool(call)
	}
	t.began = time.Now()
	result, err = call(ctx, t, holdfast.ToolCall{ID: "c", Name: "fetch", Key: "t/r/c"})
	return result, notices, err
}

type tryOutcome = func(context.Context, holdfast.ToolCall) (holdfast.ToolResult, error)

func comesTo(result holdfast.ToolResult, err error) tryOutcome {
	return func(context.Context, holdfast.ToolCall) (holdfast.ToolResult, error) { return result, err }
}

var (
	goodTry    = comesTo(holdfast.ToolResult{Text: "good"}, nil)
	brokenTry  = comesTo(holdfast.ToolResult{}, errors.New("broken"))
	failedTry  = comesTo(holdfast.ToolResult{Text: "bad", Failed: true}, nil)
	hangingTry = func(ctx context.Context, _ holdfast.ToolCall) (holdfast.ToolResult, error) {
		<-ctx.Done()
		return holdfast.ToolResult{}, ctx.Err()
	}
)

func asIs(d time.Duration) time.Duration { return d }

type retryCase struct {
	name    string
	options middleware.RetryOptions
	effect  holdfast.Effect
	tries   []tryOutcome
	n       int    // tries
	want    string // text
	notice  string
}

func retryCases(parts []holdfast.Part) []retryCase {
	ask := &holdfast.Interrupt{Message: "sure?"}
	end := &holdfast.EndRun{Err: holdfast.Errorf("x", "The end.")}
	late := fmt.Errorf("get: %w", context.DeadlineExceeded)
	return []retryCase{
		{"no need", middleware.RetryOptions{}, "", []tryOutcome{goodTry}, 1, "good", ""},
		{
			"the second helps",
			middleware.RetryOptions{},
			"",
			[]tryOutcome{brokenTry, goodTry},
			2,
			"good",
			`{"tool":"fetch","attempts":2,"helped":true}`,
		},
		{
			"a failed result",
			middleware.RetryOptions{},
			holdfast.EffectPure,
			[]tryOutcome{failedTry, goodTry},
			2,
			"good",
			`{"tool":"fetch","attempts":2,"helped":true}`,
		},
		{
			"none helps",
			middleware.RetryOptions{},
			holdfast.EffectIdempotent,
			[]tryOutcome{brokenTry},
			3,
			"broken (tried 3 times)",
			`{"tool":"fetch","attempts":3,"helped":false}`,
		},
		{
			"no result helps",
			middleware.RetryOptions{Attempts: 2},
			"",
			[]tryOutcome{failedTry},
			2,
			"bad\n[It was tried 2 times.]",
			`{"tool":"fetch","attempts":2,"helped":false}`,
		},
		{
			"parts",
			middleware.RetryOptions{Attempts: 2},
			"",
			[]tryOutcome{comesTo(holdfast.ToolResult{Parts: parts, Failed: true}, nil)},
			2,
			"[It was tried 2 times.]",
			`{"tool":"fetch","attempts":2,"helped":false}`,
		},
		{"once", middleware.RetryOptions{}, holdfast.EffectOnce, []tryOutcome{brokenTry}, 1, "broken", ""},
		{"query", middleware.RetryOptions{}, holdfast.EffectQuery, []tryOutcome{brokenTry}, 1, "broken", ""},
		{
			"not run",
			middleware.RetryOptions{},
			"",
			[]tryOutcome{comesTo(holdfast.ToolResult{Text: "no", Failed: true, NotRun: true}, nil)},
			1,
			"no",
			"",
		},
		{
			"a question",
			middleware.RetryOptions{},
			"",
			[]tryOutcome{comesTo(holdfast.ToolResult{}, ask)},
			1,
			ask.Error(),
			"",
		},
		{
			"a question at last",
			middleware.RetryOptions{},
			"",
			[]tryOutcome{brokenTry, comesTo(holdfast.ToolResult{}, ask)},
			2,
			ask.Error(),
			`{"tool":"fetch","attempts":2,"helped":true}`,
		},
		{
			"the run's end",
			middleware.RetryOptions{},
			"",
			[]tryOutcome{comesTo(holdfast.ToolResult{}, end)},
			1,
			end.Error(),
			"",
		},
		{
			"another tool",
			middleware.RetryOptions{Tools: []string{"fetch_*", "other"}},
			"",
			[]tryOutcome{brokenTry},
			1,
			"broken",
			"",
		},
		{
			"this tool",
			middleware.RetryOptions{Tools: []string{"f*"}},
			"",
			[]tryOutcome{brokenTry, goodTry},
			2,
			"good",
			`{"tool":"fetch","attempts":2,"helped":true}`,
		},
		{
			"no timeout",
			middleware.RetryOptions{On: middleware.RetryOnTimeout},
			"",
			[]tryOutcome{brokenTry},
			1,
			"broken",
			"",
		},
		{
			"no timeout, failed",
			middleware.RetryOptions{On: middleware.RetryOnTimeout},
			"",
			[]tryOutcome{failedTry},
			1,
			"bad",
			"",
		},
		{
			"a timeout of its own",
			middleware.RetryOptions{On: middleware.RetryOnTimeout},
			"",
			[]tryOutcome{comesTo(holdfast.ToolResult{}, late), goodTry},
			2,
			"good",
			`{"tool":"fetch","attempts":2,"helped":true}`,
		},
	}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	parts := []holdfast.Part{{Type: holdfast.PartText, Text: "bad"}}
	for _, tt := range retryCases(parts) {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tool := &trying{effect: tt.effect, tries: tt.tries}
				result, notices, err := tool.through(t.Context(), middleware.Retry(tt.options))
				got := result.Text
				if err != nil {
					got = err.Error()
				} else if len(result.Parts) > 0 {
					got = result.Parts[len(result.Parts)-1].Text
				}
				if tool.n != tt.n || got != tt.want {
					t.Errorf("%d tries came to %q, want %d and %q", tool.n, got, tt.n, tt.want)
				}
				if tt.notice != "" {
					tt.notice = "holdfast.retried " + tt.notice
				}
				if strings.Join(notices, "") != tt.notice {
					t.Errorf("notices %q, want %s", notices, tt.notice)
				}
				for _, key := range tool.keys {
					if key != "t/r/c" {
						t.Errorf("a try has the key %s", key)
					}
				}
			})
		})
	}
	if len(parts) != 1 {
		t.Error("the tool's own parts were changed")
	}
}

// TestRetryPauses: they double up to the maximum, and jitter only makes them shorter.
func TestRetryPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tool := &trying{tries: []tryOutcome{brokenTry}}
		o := middleware.RetryOptions{
			Attempts:   5,
			Backoff:    middleware.Duration(time.Second),
			MaxBackoff: middleware.Duration(3 * time.Second),
			Jitter:     asIs,
		}
		_, _, _ = tool.through(t.Context(), middleware.Retry(o))
		if want := []time.Duration{
			0,
			time.Second,
			3 * time.Second,
			6 * time.Second,
			9 * time.Second,
		}; !slices.Equal(tool.at, want) {
			t.Errorf("tries at %v, want %v", tool.at, want)
		}
		tool = &trying{tries: []tryOutcome{brokenTry}}
		_, _, _ = tool.through(t.Context(), middleware.Retry(middleware.RetryOptions{}))
		if first, second := tool.at[1], tool.at[2]-tool.at[1]; first < 250*time.Millisecond ||
			first > 500*time.Millisecond || second < 500*time.Millisecond || second > time.Second {
			t.Errorf("pauses of %s and %s", first, second)
		}
	})
}

// TestRetryWithoutTime: a cancelled run is not held up, and a call that would reach its
// deadline before the next attempt keeps its result.
func TestRetryWithoutTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := middleware.RetryOptions{Backoff: middleware.Duration(time.Second), Jitter: asIs}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		tool := &trying{tries: []tryOutcome{brokenTry}}
		if _, notices, err := tool.through(ctx, middleware.Retry(o)); tool.n != 1 || err.Error() != "broken" ||
			time.Since(tool.began) != 500*time.Millisecond || notices != nil {
			t.Errorf("cancelled in a pause: %d tries, %v", tool.n, err)
		}
		tool = &trying{tries: []tryOutcome{brokenTry}}
		if _, _, _ = tool.through(ctx, middleware.Retry(o)); tool.n != 1 {
			t.Errorf("cancelled before: %d tries", tool.n)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		tool = &trying{tries: []tryOutcome{brokenTry}}
		if _, _, err := tool.through(ctx, middleware.Retry(o)); tool.n != 2 ||
			err.Error() != "broken (tried 2 times)" || time.Since(tool.began) != time.Second {
			t.Errorf("a deadline: %d tries, %v, after %s", tool.n, err, time.Since(tool.began))
		}
	})
}

// TestRetryForgetsWhatAFailedTryDid: only the last attempt changes the shared state, even
// if an earlier one keeps running.
func TestRetryForgetsWhatAFailedTryDid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		update := func(ctx context.Context, text string) {
			if err := holdfast.UpdateState(ctx, func(json.RawMessage) (json.RawMessage, error) {
				return json.RawMessage(text), nil
			}); err != nil {
				t.Error(err)
			}
		}
		tool := &trying{tries: []tryOutcome{
			func(ctx context.Context, _ holdfast.ToolCall) (holdfast.ToolResult, error) {
				update(ctx, "1")
				return holdfast.ToolResult{}, errors.New("broken")
			},
			func(ctx context.Context, _ holdfast.ToolCall) (holdfast.ToolResult, error) {
				time.Sleep(time.Hour) // it does not obey
				update(ctx, "2")
				return holdfast.ToolResult{}, nil
			},
			func(ctx context.Context, call holdfast.ToolCall) (holdfast.ToolResult, error) {
				if holdfast.CallFrom(ctx).ID != call.ID {
					t.Error("the context has no call")
				}
				update(ctx, "3")
				return holdfast.ToolResult{Text: "good"}, nil
			},
		}}
		var got []string
		ctx := holdfast.ContextWithCall(t.Context(), holdfast.ToolCall{ID: "c"}, func(f holdfast.StateUpdate) {
			next, err := f(nil)
			if err != nil {
				t.Error(err)
			}
			got = append(got, string(next))
		})
		chain := []holdfast.Middleware{middleware.Retry(middleware.RetryOptions{}),
			middleware.Timeout(middleware.TimeoutOptions{Tool: middleware.Duration(time.Minute), Stragglers: &group})}
		if result, _, err := tool.through(ctx, chain...); err != nil || result.Text != "good" {
			t.Errorf("got %+v, %v", result, err)
		}
		group.Wait()
		if !slices.Equal(got, []string{"3"}) {
			t.Errorf("the state was changed by %v", got)
		}
		tool = &trying{tries: tool.tries[2:]}
		if _, _, err := tool.through(holdfast.ContextWithCall(t.Context(), holdfast.ToolCall{}, nil),
			chain...); !errors.Is(err, holdfast.ErrNoCall) {
			t.Errorf("a state that cannot be changed: %v", err)
		}
	})
}

// TestTimeoutIsAResultAfterTheTries: each attempt has its own time.
func TestTimeoutIsAResultAfterTheTries(t *testing.T) {
	t.Parallel()
	for _, on := range []string{middleware.RetryOnTimeout, middleware.RetryOnError} {
		synctest.Test(t, func(t *testing.T) {
			tool := &trying{tries: []tryOutcome{hangingTry}}
			o := middleware.RetryOptions{On: on, Attempts: 2, Backoff: middleware.Duration(time.Second), Jitter: asIs}
			result, _, err := tool.through(t.Context(), middleware.Retry(o),
				middleware.Timeout(middleware.TimeoutOptions{Tool: middleware.Duration(5 * time.Second)}))
			want := "fetch did not finish within 5s and was given up. It may still have taken " +
				"effect.\n[It was tried 2 times.]"
			if err != nil || !result.Failed || result.Text != want ||
				!slices.Equal(tool.at, []time.Duration{0, 6 * time.Second}) {
				t.Errorf("got %+v, %v, tries at %v", result, err, tool.at)
			}
		})
	}
}

func TestRetryMistakes(t *testing.T) {
	t.Parallel()
	hooktest.WantInvalid(t, "middleware.Retry", middleware.Retry, map[string]middleware.RetryOptions{
		"attempts is 1":       {Attempts: 1},
		"from 2 to 20":        {Attempts: 21},
		"an empty name":       {Tools: []string{"a", ""}},
		"not below the first": {Backoff: middleware.Duration(time.Hour)},
		`on is "always"`:      {On: "always"},
	})
}

// TestInvalidArgumentsAreNotTriedAgain: only the model can correct them.
func TestInvalidArgumentsAreNotTriedAgain(t *testing.T) {
	t.Parallel()
	calls := 0
	look := holdfast.NewTool("look", "looks", func(context.Context, struct{}) (string, error) { return "", nil })
	handler := middleware.Retry(middleware.RetryOptions{}).
		Tool(func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
			calls++
			return tool.Call(ctx, call)
		})
	for _, arguments := range []string{`{"colour":"red"}`, `{`} {
		calls = 0
		_, err := handler(t.Context(), look, holdfast.ToolCall{Name: "look", Arguments: []byte(arguments)})
		if !errors.Is(err, holdfast.ErrArguments) || calls != 1 {
			t.Errorf("%s: %d calls, %v", arguments, calls, err)
		}
	}
}

// notSent is the error of a try that has sent nothing.
type notSent struct{ error }

func (notSent) NotSent() bool { return true }

// TestRetryTellsTheToolOfEarlierTries: a tool that reaches nobody may say so, unless an earlier
// try may have reached somebody.
func TestRetryTellsTheToolOfEarlierTries(t *testing.T) {
	t.Parallel()
	unsent := fmt.Errorf("no route: %w", notSent{errors.New("nobody is there")})
	for name, c := range map[string]struct {
		first error
		begun bool // before this process
		again []bool
	}{
		"sent nothing":         {unsent, false, []bool{false, false}},
		"may have reached it":  {errors.New("broken"), false, []bool{false, true}},
		"was begun by another": {unsent, true, []bool{true, true}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var again []bool
			tool := &trying{tries: []tryOutcome{
				func(_ context.Context, call holdfast.ToolCall) (holdfast.ToolResult, error) {
					again = append(again, call.Again)
					return holdfast.ToolResult{}, c.first
				},
				func(_ context.Context, call holdfast.ToolCall) (holdfast.ToolResult, error) {
					again = append(again, call.Again)
					return holdfast.ToolResult{Text: "good"}, nil
				},
			}}
			handler := middleware.Retry(middleware.RetryOptions{}).
				Tool(func(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult,
					error) {
					return tool.Call(ctx, call)
				})
			if _, err := handler(t.Context(), tool, holdfast.ToolCall{ID: "c", Again: c.begun}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if !slices.Equal(again, c.again) {
				t.Errorf("%s: the tries were told %v, want %v", name, again, c.again)
			}
		})
	}
}
