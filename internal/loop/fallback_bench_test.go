package loop_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/filestore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
)

// BenchmarkFallback: from the failure of a model in mid-sentence to the first word of the
// next one in a client's stream, with a model that answers at once, on an embedded store:
// what was shown is taken back by then, and that is stored. The thread has a thousand
// messages, which the client is shown again. The bar is 50 ms.
func BenchmarkFallback(b *testing.B) {
	db, err := filestore.Open(filepath.Join(b.TempDir(), "data"), filestore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	longThread(b, db, 1001)
	failed := make(chan time.Time, 1)
	first := holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			if yield(holdfast.Delta{Text: strings.Repeat("half an answer ", 20)}, nil) {
				failed <- time.Now()
				yield(holdfast.Delta{}, &holdfast.ModelError{Kind: failure.Auth})
			}
		}
	})
	e := benched(b, db, holdfast.Agent{
		Name: "a", Model: first, Fallbacks: []holdfast.Model{looptest.Say(holdfast.Delta{Text: "whole"})},
		Policy: holdfast.Policy{OnUnfinished: "abandon"},
	})
	var sum, longest time.Duration
	for i := 0; b.Loop(); i++ {
		reply, err := e.Post(b.Context(), looptest.Alice, "",
			looptest.RunInput("t", fmt.Sprintf("run%d", i), looptest.UserSays(fmt.Sprintf("new%d", i), "go on")))
		if err != nil {
			b.Fatal(err)
		}
		var word time.Time
		for frames := range reply.Whole() {
			for _, f := range frames {
				if word.IsZero() && bytes.Contains(f.Data, []byte(`"delta":"whole"`)) {
					word = time.Now()
				}
			}
		}
		took := word.Sub(<-failed)
		sum, longest = sum+took, max(longest, took)
		wait.Until(b, "the end of the run", func() bool { return e.Running() == 0 })
	}
	b.ReportMetric(float64(sum.Microseconds())/1000/float64(b.N), "ms-mean")
	b.ReportMetric(float64(longest.Microseconds())/1000, "ms-max")
}
