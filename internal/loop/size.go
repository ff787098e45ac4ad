package loop

import (
	"context"

	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// Measured compares the size of a thread with its bounds, or with MaxBytes alone if
// warned is set. It reports whether the thread is over a bound, and returns an error if
// that is MaxBytes. st.Bytes counts what was ever written; the store is asked only when
// that is over a bound.
func (h *Host) Measured(
	ctx context.Context, key store.ThreadKey, st *thread.State, warned bool,
) (over bool, err error) {
	bound := h.Config.MaxBytes
	if warn := h.Config.WarnBytes; warn > 0 && !warned && (bound <= 0 || warn < bound) {
		bound = warn
	}
	if bound <= 0 || st.Bytes <= bound {
		return false, nil
	}
	if st.Bytes, err = h.Read.Size(ctx, key); err != nil {
		return false, err
	}
	if h.Config.MaxBytes > 0 && st.Bytes > h.Config.MaxBytes {
		return true, errThreadTooLarge(st.Bytes, h.Config.MaxBytes)
	}
	return h.Config.WarnBytes > 0 && st.Bytes > h.Config.WarnBytes, nil
}
