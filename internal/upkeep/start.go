package upkeep

import "cmp"

// Start begins to archive logs, to enforce retention, and to count what tenants use. Call
// Stop to end that.
func (k *Keeper) Start() {
	k.wg.Go(func() { k.cfg.Limits.Run(k.ctx) })
	k.wg.Go(func() { k.counting.keep(k.ctx) })
	for range cmp.Or(k.cfg.Archivers, archivers) {
		k.wg.Go(k.keepArchives)
	}
	k.wg.Go(k.keepRetention)
	retaining{k}.keepDue()
	k.wg.Go(func() { k.indexing.Keep(k.ctx) })
}
