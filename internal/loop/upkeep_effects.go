package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast"
)

// effects returns what the agent's tools declare; the frontend's declare nothing.
func (k *Keeper) effects(agent string, frontend []string) func(tool string) string {
	declared := map[string]string{}
	for _, name := range frontend {
		declared[name] = "frontend"
	}
	if a, err := k.engine.Agent(agent); err == nil {
		for _, t := range a.Tools {
			spec := t.Spec()
			if spec.Effect == "" {
				spec.Effect = holdfast.EffectIdempotent
			}
			declared[spec.Name] = string(spec.Effect)
		}
	}
	return func(tool string) string {
		if effect, ok := declared[tool]; ok {
			return effect
		}
		return "unknown"
	}
}

func (p *past) effect(effect string) holdfast.PastEffect {
	out := holdfast.PastEffect{CallID: p.call, Tool: p.made.name, Effect: effect, Arguments: json.RawMessage(p.made.arguments)}
	if !json.Valid(out.Arguments) {
		out.Arguments = mustJSON(p.made.arguments)
	}
	if p.result != nil {
		out.Message, out.Failed = p.result.ID, markOf(p.result).Failed
	}
	return out
}

// copyTo copies what a fork needs of the thread: the path, the shared state, the run
// to go on with.
func (k *Keeper) copyTo(ctx context.Context, c *holdfast.Commit, t *thread, d *departure) error {
	parent := ""
	for i := range d.hist.path {
		id := d.hist.path[i].ID
		c.Messages = append(c.Messages, holdfast.StoredMessage{ID: id, Parent: parent, Data: d.hist.raw[i]})
		parent = id
	}
	for _, id := range d.st.blobs() {
		data, err := k.read.shared(ctx, t.key, id)
		if err != nil {
			return err
		}
		c.Put = append(c.Put, holdfast.Value{Kind: holdfast.KindBlob, ID: id, Data: data})
	}
	rec, err := k.read.run(ctx, t.key, d.st.Run)
	if err != nil {
		return err
	}
	rec.After = holdfast.Cursor{}
	c.Put = append(c.Put, holdfast.Value{Kind: holdfast.KindRun, ID: rec.ID, Data: mustJSON(rec)})
	putOutcome(c, rec.ID, runOutcome{Format: Format, Outcome: d.st.Outcome, Code: d.st.Code, EndedAt: k.cfg.Now()})
	for i := range d.st.Calls {
		if d.st.Calls[i].Thread == "" {
			d.st.Calls[i].Thread = t.key.Thread
		}
	}
	d.st.Origin = &origin{Thread: t.key.Thread, Checkpoint: d.from}
	d.st.Boundary, d.st.Checkpoints, d.st.Bytes = holdfast.Cursor{}, 0, 0
	return nil
}

// keepResults makes the results that are to be used again. What a call did to the
// shared state is the difference between the states before and after it.
func (k *Keeper) keepResults(ctx context.Context, t *thread, d *departure) error {
	state, err := k.read.shared(ctx, t.key, d.st.Shared)
	if err != nil {
		return err
	}
	for n, p := range d.past {
		if p.result == nil {
			continue
		}
		kept := reusable{Format: Format, Tool: p.made.name, Content: p.result.Content, Failed: markOf(p.result).Failed}
		after, err := k.read.shared(ctx, t.key, stateOf(p.result.ID))
		switch {
		case errors.Is(err, holdfast.ErrNotFound): // it did nothing to it
		case err != nil:
			return err
		default:
			kept.remember(state, after)
			state = after
		}
		id := fmt.Sprintf("%s/%06d", callHash(p.made.name, p.made.arguments), n)
		d.kept = append(d.kept, holdfast.Value{Kind: holdfast.KindReuse, ID: id, Data: mustJSON(kept)})
	}
	return nil
}
