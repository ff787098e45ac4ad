package loop

import (
	"context"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// measured compares what a thread takes with its bounds, or with MaxBytes alone once
// it was warned of. The estimate in the state is what was ever written; only when that
// is too much the store is asked.
func (e *Engine) measured(ctx context.Context, key holdfast.ThreadKey, st *thread.State, warned bool) (over bool, err error) {
	bound := e.cfg.MaxBytes
	if warn := e.cfg.WarnBytes; warn > 0 && !warned && (bound <= 0 || warn < bound) {
		bound = warn
	}
	if bound <= 0 || st.Bytes <= bound {
		return false, nil
	}
	if st.Bytes, err = e.Read.Size(ctx, key); err != nil {
		return false, err
	}
	if e.cfg.MaxBytes > 0 && st.Bytes > e.cfg.MaxBytes {
		return true, errThreadTooLarge(st.Bytes, e.cfg.MaxBytes)
	}
	return e.cfg.WarnBytes > 0 && st.Bytes > e.cfg.WarnBytes, nil
}

func errThreadTooLarge(has, limit int64) *holdfast.Error {
	return holdfast.Errorf(holdfast.CodeThreadTooLarge, "This thread takes %d bytes, %d are allowed; nothing was lost.", has, limit).
		WithHint("Prune it (POST /threads/{thread}/prune), fork it at a message, or begin a new thread.").
		With("bytes", has).With("limit", limit)
}
