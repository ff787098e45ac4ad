package loop_test

import (
	"bytes"
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
)

// TestFailureSaysTheSameLater: a client that attaches to a thread whose run has failed reads
// what the run's own stream said, for people and for developers, in both dialects.
func TestFailureSaysTheSameLater(t *testing.T) {
	model := holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			yield(holdfast.Delta{}, holdfast.Errorf(codes.TooManyErrors, "Nothing works.").WithHint("POST once more."))
		}
	})
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{Name: "a", Model: model})
	said := looptest.Failed(t, looptest.Started(t, e, "t"), codes.TooManyErrors)
	if strings.Contains(said.Message, "POST") || said.FullText() != "Nothing works. POST once more." {
		t.Errorf("the stream says %q, and the hint is %q", said.Message, said.FullText())
	}
	for _, dialect := range []agui.Dialect{agui.DialectV1, agui.DialectLegacy} {
		reply, err := e.Owner.Attach(t.Context(), looptest.Alice, "t", dialect)
		later := looptest.Failed(t, looptest.Collect(t, reply, err), codes.TooManyErrors)
		if later.Message != said.Message || !bytes.Equal(later.Metadata, said.Metadata) {
			t.Errorf("in dialect %d, who comes later reads %s", dialect, agui.Append(nil, later))
		}
	}
	info := looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "t"))(t)
	runs := looptest.Must(e.Keeper.Runs(t.Context(), looptest.Alice, "t", "", 1))(t)
	if info.Text != said.FullText() || len(runs) != 1 || runs[0].Text != said.FullText() {
		t.Errorf("as JSON, the thread says %q, and the run %+v", info.Text, runs)
	}
}
