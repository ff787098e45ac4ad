package loop

import (
	"context"

	"github.com/holdfast-agents/holdfast"
)

// Commit makes one try to commit, and tells the observer.
func (e *Engine) Commit(ctx context.Context, at holdfast.Iteration, c *holdfast.Commit) error {
	began := e.cfg.Now()
	crashPoint("before", c)
	err := e.cfg.Store.Commit(ctx, c)
	crashPoint("after", c)
	e.cfg.Observer.Committed(at, c, e.cfg.Now().Sub(began), err)
	return err
}
