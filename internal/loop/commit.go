package loop

import (
	"context"

	"github.com/holdfast-agents/holdfast"
)

// Commit makes one try to commit, and tells the observer.
func (h *host) Commit(ctx context.Context, at holdfast.Iteration, c *holdfast.Commit) error {
	began := h.cfg.Now()
	crashPoint("before", c)
	err := h.cfg.Store.Commit(ctx, c)
	crashPoint("after", c)
	h.cfg.Observer.Committed(at, c, h.cfg.Now().Sub(began), err)
	return err
}
