package loop

import (
	"time"

	"github.com/holdfast-agents/holdfast/internal/panics"
)

// keepLease renews the process's lease three times per lease period.
func (e *Engine) keepLease() {
	tick := time.NewTicker(e.cfg.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-tick.C:
			err := panics.Caught(func() error { return e.cfg.Store.Announce(e.ctx, e.process, e.cfg.Lease) })
			if e.ctx.Err() != nil {
				return
			}
			e.cfg.Observer.LeaseRenewed(err)
			if err != nil {
				e.cfg.Log.Warn("the lease could not be renewed", "error", err)
			}
		}
	}
}
