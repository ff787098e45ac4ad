package permission

import (
	"context"

	"github.com/holdfast-agents/holdfast"
)

// The notices of tool permission. Their value has the tool and the rule.
const (
	// NoticeDenied says that a call was denied, and by whom: a rule, a person, or what a
	// person has answered before.
	NoticeDenied = "holdfast.permission_denied"
	// NoticeRemembered says that an answer also holds for later calls: in which scope and,
	// for that of the user, in which account, which [Forget] takes.
	NoticeRemembered = "holdfast.permission_remembered"
	// NoticeNotRemembered says that the store could not keep an answer for the user.
	NoticeNotRemembered = "holdfast.permission_not_remembered"
)

// notify says something in the stream. Where nobody can be told any more,
// the run is over, and the decision stands all the same.
func notify(ctx context.Context, name string, value any) {
	_ = holdfast.Notify(ctx, name, value)
}
