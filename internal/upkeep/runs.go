package upkeep

import (
	"cmp"
	"context"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Runs lists a thread's runs, newest first: at most limit (0: all) of those that come after
// the run before in the list (empty: from the newest). A fork has the run that it continues,
// as it was at that point.
func (k *Keeper) Runs(
	ctx context.Context, who holdfast.Principal, id, before string, limit int,
) ([]threads.Run, error) {
	t, err := k.read.Existing(ctx, who, id)
	if err != nil {
		return nil, err
	}
	records, err := k.cfg.Store.Values(ctx, t.Key, store.KindRun, "", 0)
	if err != nil {
		return nil, thread.ReadError(t.Key, err)
	}
	outcomes, err := k.cfg.Store.Values(ctx, t.Key, store.KindOutcome, "", 0)
	if err != nil {
		return nil, thread.ReadError(t.Key, err)
	}
	ended := map[string]thread.RunEnd{}
	for _, v := range outcomes {
		var o thread.RunEnd
		if err := thread.Decode(v.Data, &o); err != nil {
			return nil, thread.ReadError(t.Key, err)
		}
		ended[v.ID] = o
	}
	runs := make([]thread.Run, len(records))
	for i, v := range records {
		if err := thread.Decode(v.Data, &runs[i]); err != nil {
			return nil, thread.ReadError(t.Key, err)
		}
	}
	// The clock may stand still or go back between two runs; the log does not. A run that
	// was copied into a fork has no place in the fork's log: it is the first.
	slices.SortFunc(runs, func(a, b thread.Run) int {
		return cmp.Or(cmp.Compare(b.After.Number, a.After.Number), b.StartedAt.Compare(a.StartedAt),
			cmp.Compare(b.ID, a.ID))
	})
	if before != "" {
		at := slices.IndexFunc(runs, func(r thread.Run) bool { return r.ID == before })
		if at < 0 {
			return nil, thread.RunNotFound(id, before)
		}
		runs = runs[at+1:]
	}
	if limit > 0 {
		runs = runs[:min(limit, len(runs))]
	}
	list := make([]threads.Run, len(runs))
	for i := range runs {
		list[i] = runs[i].Public(ended[runs[i].ID])
		if runs[i].ID == t.State.Run() && t.State.Running() {
			list[i].Records, list[i].Usage = t.Last().Number-runs[i].After.Number, thread.PublicUsage(t.State.Usage)
		}
		if runs[i].ID == t.State.Run() {
			list[i].Interrupts = t.State.Questions()
		}
		k.price(&list[i])
	}
	return list, nil
}

// price says what a run has cost.
func (k *Keeper) price(run *threads.Run) {
	if k.cfg.Price == nil || len(run.Usage) == 0 {
		return
	}
	usage := make([]holdfast.Usage, len(run.Usage))
	for i := range run.Usage {
		usage[i] = run.Usage[i].Usage
	}
	run.Usage, run.Cost = k.cfg.Price(usage)
}
