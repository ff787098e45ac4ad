package loop_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
)

// TestTryingAgainSaysWhen: a provider may ask for minutes, in which the run does nothing.
func TestTryingAgainSaysWhen(t *testing.T) {
	for want, asked := range map[string]time.Duration{"in=200ms": 0, "in=1m30s": 90 * time.Second,
		"in=2m0s": time.Hour} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				model := holdfast.ModelFunc(func(context.Context,
					*holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
					return func(yield func(holdfast.Delta, error) bool) {
						if tries++; tries == 1 {
							yield(holdfast.Delta{},
								&holdfast.ModelError{Retryable: true, RetryAfter: asked, Err: errors.New("429")})
							return
						}
						yield(holdfast.Delta{Text: "hi", Finish: holdfast.FinishStop}, nil)
					}
				})
				var log bytes.Buffer
				e := looptest.Start(t, memstore.New(), func(c *looptest.Config) {
					c.Log = slog.New(slog.NewTextHandler(&log, nil))
				}, holdfast.Agent{Name: "a", Model: model})
				looptest.Succeeded(t, looptest.Started(t, e, "t"))
				synctest.Wait() // nobody writes to the log
				if !strings.Contains(log.String(), "next=retry") || !strings.Contains(log.String(), want) {
					t.Errorf("the log does not say %s: %s", want, &log)
				}
			})
		})
	}
}
