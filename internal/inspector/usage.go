package inspector

import (
	"context"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/threads"
)

// Usage returns what all runs of a thread have used. A fork counts what it has used itself.
func (in *Inspector) Usage(ctx context.Context, who holdfast.Principal, id string) (*threads.ThreadUsage, error) {
	runs, err := in.cfg.Runs(ctx, who, id, "", 0)
	if err != nil {
		return nil, err
	}
	sum, out := &thread.State{}, &threads.ThreadUsage{}
	for i := range runs {
		if runs[i].Records == 0 {
			continue // the run of another thread
		}
		out.Runs++
		out.Incomplete = out.Incomplete || len(runs[i].Usage) == 0 && len(runs[i].Processes) == 0
		for j := range runs[i].Usage {
			sum.AddUsage(&runs[i].Usage[j].Usage)
		}
	}
	out.Usage, out.Cost = in.cfg.Price(sum.Usage)
	return out, nil
}
