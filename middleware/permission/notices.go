package permission

import (
	"context"

	"github.com/holdfast-agents/holdfast"
)

// notify says something in the stream. Where nobody can be told any more,
// the run is over, and the decision stands all the same.
func notify(ctx context.Context, name string, value any) {
	_ = holdfast.Notify(ctx, name, value)
}
