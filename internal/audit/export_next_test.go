//go:build nextformat

package audit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// TestNextFormatImportHeldBack: a thread of a format that the servers of a store do not write yet is
// not imported; once they do, it is.
func TestNextFormatImportHeldBack(t *testing.T) {
	db, _ := finishedThread(t)
	text, other := written(t, db, looptest.KeyOf("t")), memstore.New()
	agree := func(terms store.FormatTerms) {
		t.Helper()
		err := other.Announce(t.Context(), "before", time.Hour)
		if err == nil {
			_, err = other.AgreeFormat(t.Context(), "before", terms)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	agree(store.FormatTerms{Reads: thread.FormatBefore})
	err := copied(t, other, looptest.KeyOf("t"), text)
	want := fmt.Sprintf("it has data format %d, and the servers of this store write format %d", thread.Format,
		thread.FormatBefore)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	agree(store.FormatTerms{Reads: thread.Format, Wants: thread.Format})
	if err := copied(t, other, looptest.KeyOf("t"), text); err != nil {
		t.Error(err)
	}
}
