package server

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
)

// TestKeyEndsBeforeTheStream: a key that ends while a request is still decided about is told as
// that. Whether there is a run is not known here, so nothing is said about it.
func TestKeyEndsBeforeTheStream(t *testing.T) {
	revoked, revoke := context.WithCancel(t.Context())
	who := holdfast.Principal{Tenant: "acme", User: "alice", Rights: &access.Rights{Revoked: revoked}}
	streams := &keyedStreams{now: clock.Wall}
	reply, err := streams.open(t.Context(), who, func(ctx context.Context) (*agui.Reply, error) {
		revoke()
		<-ctx.Done() // as a store that is asked with it
		return nil, ctx.Err()
	})
	e := holdfast.AsError(err)
	if reply != nil || e.Code != codes.Unauthenticated || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", reply, err)
	}
	if strings.Contains(e.Message, "run") || !strings.Contains(e.Hint, "again") {
		t.Errorf("it says %q, %q", e.Message, e.Hint)
	}
}
