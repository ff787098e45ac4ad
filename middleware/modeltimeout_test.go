package middleware

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// deltas is a model that pauses before each delta.
func deltas(pauses ...time.Duration) holdfast.ModelCall {
	return func(ctx context.Context, _ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			for _, p := range pauses {
				select {
				case <-time.After(p):
				case <-ctx.Done():
					yield(holdfast.Delta{}, ctx.Err())
					return
				}
				if !yield(holdfast.Delta{Text: "x"}, nil) {
					return
				}
			}
			yield(holdfast.Delta{Finish: holdfast.FinishStop}, nil)
		}
	}
}

func TestModelTimeout(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		model  holdfast.ModelCall
		reader time.Duration // per delta
		want   int           // deltas
		err    string        // of the ModelError; empty for success
	}{
		{"in time", deltas(time.Second, 9*time.Second), 0, 3, ""},
		{"silent", deltas(time.Second, 11*time.Second), 0, 1, "nothing came from the model for 10s"},
		{
			"too long",
			deltas(9*time.Second, 9*time.Second, 9*time.Second, 9*time.Second),
			0,
			3,
			"the model's answer was not complete after 30s",
		},
		{"a slow reader is not a silent model", deltas(time.Second, time.Second), 12 * time.Second, 3, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, failure := 0, error(nil)
				for _, err := range ModelTimeout(30*time.Second, 10*time.Second).Model(tt.model)(t.Context(),
					&holdfast.ModelRequest{}) {
					if err != nil {
						failure = err
						break
					}
					got++
					time.Sleep(tt.reader)
				}
				var m *holdfast.ModelError
				switch {
				case got != tt.want:
					t.Errorf("got %d deltas, want %d", got, tt.want)
				case tt.err == "" && failure != nil:
					t.Errorf("got %v", failure)
				case tt.err != "" && (!errors.As(failure, &m) || !m.Retryable || m.Public == "" ||
					m.Err.Error() != tt.err):
					t.Errorf("got %v, want %s", failure, tt.err)
				}
			})
		})
	}
}

func TestModelTimeoutOfAModelThatEndsQuietly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		quiet := func(ctx context.Context, _ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			return func(func(holdfast.Delta, error) bool) { <-ctx.Done() }
		}
		var failure error
		for _, err := range ModelTimeout(0, time.Second).Model(quiet)(t.Context(), &holdfast.ModelRequest{}) {
			failure = err
		}
		var m *holdfast.ModelError
		if !errors.As(failure, &m) || !m.Retryable {
			t.Errorf("got %v, want a retryable error", failure)
		}
	})
}

func TestModelTimeoutPassesErrorsOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		for _, err := range ModelTimeout(time.Minute, time.Minute).Model(deltas(time.Hour))(ctx,
			&holdfast.ModelRequest{}) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the model's own error", err)
			}
		}
	})
}

// TestModelTimeoutOfSeveral: of several bounds, the one that was reached says so.
func TestModelTimeoutOfSeveral(t *testing.T) {
	t.Parallel()
	short, long := ModelTimeout(time.Second, 0), ModelTimeout(time.Minute, time.Minute)
	for _, chain := range [][]holdfast.Middleware{{short, long}, {long, short}} {
		synctest.Test(t, func(t *testing.T) {
			call := chain[0].Model(chain[1].Model(deltas(2 * time.Second)))
			for _, err := range call(t.Context(), &holdfast.ModelRequest{}) {
				var failed *holdfast.ModelError
				if !errors.As(err, &failed) || failed.Err.Error() != "the model's answer was not complete after 1s" {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}
