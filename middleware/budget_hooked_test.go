package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/memstore"
)

// hooked is a run without a server: what hooks see of one, and what they say.
type hooked struct {
	t       *testing.T
	ledger  holdfast.Ledger
	states  *holdfast.LiveStates
	at      holdfast.Iteration
	notices []string // "name value"
}

func newHooked(t *testing.T) *hooked {
	return &hooked{t: t, ledger: memstore.New(), states: holdfast.NewLiveStates(nil), at: holdfast.Iteration{
		Agent: "a", Thread: "th", Run: "r1", Principal: holdfast.Principal{Tenant: "acme", User: "ann"},
	}}
}

func (h *hooked) ctx() context.Context {
	at := h.at
	return holdfast.ContextWithRun(h.t.Context(), &holdfast.RunContext{
		States: h.states, Ledger: h.ledger, Iteration: func() holdfast.Iteration { return at },
		Notify: func(_ context.Context, name string, value any) error {
			b, err := json.Marshal(value)
			h.notices = append(h.notices, name+" "+string(b))
			return err
		},
	})
}

// ask calls a model through the hook of a middleware and returns its error.
func (h *hooked) ask(m holdfast.Middleware, model holdfast.ModelCall) error {
	return h.try(m, model, 0)
}

func (h *hooked) try(m holdfast.Middleware, model holdfast.ModelCall, attempt int) error {
	req := &holdfast.ModelRequest{Thread: h.at.Thread, Run: h.at.Run, Iteration: h.at.Number, Attempt: attempt}
	for d, err := range m.Model(model)(h.ctx(), req) {
		if err != nil || d.Finish != "" {
			return err
		}
	}
	return nil
}

// next goes on to the next iteration.
func (h *hooked) next() { h.at.Number, h.at.Answer = h.at.Number+1, nil }

func (h *hooked) used(account string) int64 {
	h.t.Helper()
	used, err := h.ledger.Used(h.t.Context(), "acme", []string{account})
	if err != nil {
		h.t.Fatal(err)
	}
	return used[0]
}

func (h *hooked) wantUsed(account string, want int64) {
	h.t.Helper()
	if got := h.used(account); got != want {
		h.t.Errorf("%s: %d used, want %d", account, got, want)
	}
}

func (h *hooked) wantNotices(want ...string) {
	h.t.Helper()
	if strings.Join(h.notices, "\n") != strings.Join(want, "\n") {
		h.t.Errorf("got the notices\n%s\nwant\n%s", strings.Join(h.notices, "\n"), strings.Join(want, "\n"))
	}
}

// says is a model that yields the deltas.
func says(deltas ...holdfast.Delta) holdfast.ModelCall {
	return func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			for _, d := range deltas {
				if !yield(d, nil) {
					return
				}
			}
		}
	}
}

// costing is a model that reports its usage and ends its answer.
func costing(u holdfast.Usage) holdfast.ModelCall {
	return says(holdfast.Delta{Text: "x"}, holdfast.Delta{Usage: &u, Finish: holdfast.FinishStop})
}

func using(input, output int64) holdfast.Usage {
	return holdfast.Usage{Provider: "p", Model: "m", InputTokens: &input, OutputTokens: &output}
}

// breaking is a model that yields deltas and fails.
func breaking(err error, deltas ...holdfast.Delta) holdfast.ModelCall {
	return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			for d := range says(deltas...)(ctx, req) {
				if !yield(d, nil) {
					return
				}
			}
			yield(holdfast.Delta{}, err)
		}
	}
}

func wantCode(t *testing.T, err error, code string, parts ...string) {
	t.Helper()
	var e *holdfast.Error
	if !errors.As(err, &e) || e.Code != code || e.Hint == "" {
		t.Fatalf("got %v, want the code %s with a hint", err, code)
	}
	for _, part := range parts {
		if !strings.Contains(e.Message+" "+e.Hint, part) {
			t.Errorf("%q is not in: %s %s", part, e.Message, e.Hint)
		}
	}
}
