package loop

import (
	"context"

	"github.com/holdfast-agents/holdfast/internal/pace"
)

// When a server dies, many runs go on at once that repeat the model call that they were in. Their
// calls wait for their turns, each in the line of its model's circuit.

// await waits for the turn of a call that the run repeats; next returns the place of the model that is
// to be asked. Meanwhile the run can be cancelled, and it is left when the server shuts down.
func (r *run) await(next func() int) error {
	for r.repeats {
		circuit, sharing := r.models[next()].Circuit, int(r.host.Sharing.Load())
		p := r.host.Config.Pace.Enter(circuit, sharing, len(r.models) > 1)
		if p == nil {
			return nil
		}
		if mine, err := r.stand(p); mine || err != nil {
			return err
		}
	}
	return nil
}

// stand waits in a line until it is the run's turn. It returns false if the run may find another model
// now.
func (r *run) stand(p *pace.Place) (mine bool, err error) {
	select {
	case mine = <-p.Turn():
		return mine, nil
	case <-r.host.Draining:
		err = ErrStopped
	case <-r.ctx.Done():
		err = context.Cause(r.ctx)
	}
	r.host.Config.Pace.Leave(p)
	return false, err
}
