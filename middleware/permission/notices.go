package permission

import (
	"context"

	"github.com/holdfast-agents/holdfast"
)

// The notices of tool permission. Their value has the tool and the rule.
const (
	// NoticeDenied is the notice of a denied call, with who denied it: a rule, a person,
	// or a remembered answer.
	NoticeDenied = "holdfast.permission_denied"
	// NoticeRemembered is the notice of an answer that also applies to later calls, with
	// its scope and, for the scope of the user, the account that [Forget] takes.
	NoticeRemembered = "holdfast.permission_remembered"
	// NoticeNotRemembered is the notice of an answer for the user that the store could
	// not keep.
	NoticeNotRemembered = "holdfast.permission_not_remembered"
)

// notify sends a notice. An error is ignored: if nobody can be told any more the run is over,
// and the decision still stands.
func notify(ctx context.Context, name string, value any) {
	_ = holdfast.Notify(ctx, name, value)
}
