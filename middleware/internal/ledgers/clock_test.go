package ledgers_test

import (
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/middleware/internal/ledgers"
	"github.com/holdfast-agents/holdfast/store"
)

type timed struct{ store.Ledger }

func (timed) Now() time.Time { return time.Unix(1, 0) }

// TestClock: the given clock counts, then that of the ledger, then that of the machine.
func TestClock(t *testing.T) {
	given := func() time.Time { return time.Unix(2, 0) }
	if at := ledgers.Clock(timed{}, given)(); at.Unix() != 2 {
		t.Errorf("given: %s", at)
	}
	if at := ledgers.Clock(timed{}, nil)(); at.Unix() != 1 {
		t.Errorf("the ledger's: %s", at)
	}
	if at := ledgers.Clock(struct{ store.Ledger }{}, nil)(); time.Since(at) > time.Minute {
		t.Errorf("the machine's: %s", at)
	}
}
