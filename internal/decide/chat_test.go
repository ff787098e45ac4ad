package decide

import (
	"testing"

	"github.com/holdfast-agents/holdfast"
)

// TestChat: what the agent or the request has chosen stays.
func TestChat(t *testing.T) {
	all := Policy{Policy: holdfast.Policy{OnBusy: "cancel_and_run", OnInterrupted: "decline", OnUnfinished: "abandon"}, Branch: true}
	if got := (Policy{}).Chat(); got != all {
		t.Errorf("%+v", got)
	}
	chosen := Policy{Policy: holdfast.Policy{OnBusy: "reject", OnInterrupted: "reject", OnUnfinished: "reject"}, Branch: true, AllowStale: true}
	if got := chosen.Chat(); got != chosen {
		t.Errorf("%+v", got)
	}
}
