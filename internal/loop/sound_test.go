package loop_test

import (
	"testing"

	"github.com/holdfast-agents/holdfast/internal/audit"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
)

// sound checks that nothing is wrong with a stored thread.
func sound(t *testing.T, store store.Store, id string) {
	t.Helper()
	for _, p := range looptest.Must(audit.Check(t.Context(), store, looptest.KeyOf(id)))(t) {
		t.Errorf("thread %s: %s: %s", id, p.What, p.Detail)
	}
}
