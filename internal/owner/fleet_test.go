package owner

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/store"
)

// TestHeirsAreRead: once an owner is lost, nobody leaves its threads to a process that has gone since
// the order was read.
func TestHeirsAreRead(t *testing.T) {
	t.Parallel()
	db := memstore.New()
	f := newFleet(db, "me", time.Hour)
	comesFirst := func() (n int) {
		order, err := f.heirs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			if order.soonest("lost", store.ThreadKey{Thread: fmt.Sprint(i)}) == 0 {
				n++
			}
		}
		return n
	}
	for _, process := range []string{"me", "other"} {
		if err := db.Announce(t.Context(), process, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if n := comesFirst(); n < 20 || n > 80 {
		t.Errorf("of two, one comes first for %d threads of 100", n)
	}
	if err := db.Retire(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	f.forget()
	if n := comesFirst(); n != 100 {
		t.Errorf("a process that is left alone comes first for %d threads of 100", n)
	}
}
