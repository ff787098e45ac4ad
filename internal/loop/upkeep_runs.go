package loop

import (
	"cmp"
	"context"
	"slices"

	"github.com/holdfast-agents/holdfast"
)

// Runs lists a thread's runs, newest first. A fork has the run that it goes on with,
// as it was at that point.
func (k *Keeper) Runs(ctx context.Context, who holdfast.Principal, thread string) ([]holdfast.RunInfo, error) {
	t, err := k.read.existing(ctx, who, thread)
	if err != nil {
		return nil, err
	}
	records, err := k.cfg.Store.Values(ctx, t.key, holdfast.KindRun, "", 0)
	if err != nil {
		return nil, readError(err)
	}
	outcomes, err := k.cfg.Store.Values(ctx, t.key, holdfast.KindOutcome, "", 0)
	if err != nil {
		return nil, readError(err)
	}
	ended := map[string]runOutcome{}
	for _, v := range outcomes {
		var o runOutcome
		if err := decodeValue(v.Data, &o); err != nil {
			return nil, readError(err)
		}
		ended[v.ID] = o
	}
	runs := make([]runRecord, len(records))
	for i, v := range records {
		if err := decodeValue(v.Data, &runs[i]); err != nil {
			return nil, readError(err)
		}
	}
	// The clock may stand still between two runs, or go back; the log does not. A run
	// that was copied into a fork has no place in its log: it is the first.
	slices.SortFunc(runs, func(a, b runRecord) int {
		return cmp.Or(cmp.Compare(b.After.Number, a.After.Number), b.StartedAt.Compare(a.StartedAt), cmp.Compare(b.ID, a.ID))
	})
	list := make([]holdfast.RunInfo, len(runs))
	for i := range runs {
		list[i] = runs[i].public(ended[runs[i].ID])
	}
	return list, nil
}
