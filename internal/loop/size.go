package loop

import (
	"context"

	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// measured compares the size of a thread with its bounds, or with MaxBytes alone if
// warned is set. It reports whether the thread is over a bound, and returns an error if
// that is MaxBytes. st.Bytes counts what was ever written; the store is asked only when
// that is over a bound.
func (h *host) measured(
	ctx context.Context,
	key store.ThreadKey,
	st *thread.State,
	warned bool,
) (over bool, err error) {
	bound := h.cfg.MaxBytes
	if warn := h.cfg.WarnBytes; warn > 0 && !warned && (bound <= 0 || warn < bound) {
		bound = warn
	}
	if bound <= 0 || st.Bytes <= bound {
		return false, nil
	}
	if st.Bytes, err = h.read.Size(ctx, key); err != nil {
		return false, err
	}
	if h.cfg.MaxBytes > 0 && st.Bytes > h.cfg.MaxBytes {
		return true, errThreadTooLarge(st.Bytes, h.cfg.MaxBytes)
	}
	return h.cfg.WarnBytes > 0 && st.Bytes > h.cfg.WarnBytes, nil
}

// countBytes adds what the run has written since the last time to the size of its thread,
// for the commit that stores it.
func (r *run) countBytes() {
	r.st.Bytes += r.w.Written()
	r.host.cfg.Limits.Wrote(r.principal(), r.st.Bytes-r.counted)
	r.counted = r.st.Bytes
}
