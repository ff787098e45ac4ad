package inspector_test

import (
	"encoding/json"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/inspector"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/threads"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bob is another user than the one of most tests.
var bob = holdfast.Principal{Tenant: "acme", User: "bob"}

// free is a price list without prices.
func free(usage []holdfast.Usage) (list []threads.Usage, _ json.Number) {
	return thread.PublicUsage(usage), ""
}

// of returns an inspector of an engine's threads.
func of(e *looptest.Engine) *inspector.Inspector { return by(e, false) }

// by returns one that lists threads by the index, or by their heads.
func by(e *looptest.Engine, index bool) *inspector.Inspector {
	return inspector.New(inspector.Config{
		Store:   e.Store,
		Runs:    e.Keeper.Runs,
		Tools:   e.Owner.Tools,
		Price:   free,
		Indexed: func() bool { return index },
	})
}
