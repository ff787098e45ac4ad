package middleware_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware"
)

func TestTimeoutOfAModel(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]middleware.TimeoutOptions{
		"not complete after 5s":           {Model: middleware.Duration(5 * time.Second)},
		"nothing came from the model for": {ModelIdle: middleware.Duration(time.Second)},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := middleware.Timeout(o)
			if m.Tool != nil {
				t.Error("it bounds tools")
			}
			silent := func(ctx context.Context, _ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
				return func(func(holdfast.Delta, error) bool) { <-ctx.Done() }
			}
			var failed *holdfast.ModelError
			for _, err := range m.Model(silent)(t.Context(), &holdfast.ModelRequest{}) {
				if !errors.As(err, &failed) || !failed.Retryable || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %s", err, want)
				}
			}
			if failed == nil {
				t.Error("it ended without an error")
			}
		})
	}
}

// TestTimeoutOfATool: the tool's own timeout takes precedence.
func TestTimeoutOfATool(t *testing.T) {
	t.Parallel()
	for want, own := range map[string]time.Duration{"within 5s": 0, "within 2s": 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			m := middleware.Timeout(middleware.TimeoutOptions{Tool: middleware.Duration(5 * time.Second)})
			if m.Model != nil {
				t.Error("it bounds models")
			}
			result, _, err := (&trying{timeout: own, tries: []tryOutcome{hangingTry}}).through(t.Context(), m)
			if err != nil || !result.Failed || !strings.Contains(result.Text, want) {
				t.Errorf("got %+v, %v", result, err)
			}
		})
	}
}

func TestTimeoutMistakes(t *testing.T) {
	t.Parallel()
	hooktest.WantInvalid(t, "middleware.Timeout", middleware.Timeout, map[string]middleware.TimeoutOptions{
		"nothing is bounded":    {},
		"a timeout is negative": {Model: -1},
	})
}
