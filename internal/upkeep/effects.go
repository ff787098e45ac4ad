package upkeep

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// effects returns a function that says what effect a tool of the agent declares;
// "frontend" for the frontend's, and "unknown" for others.
func (k *Keeper) effects(agent string, frontend []string) func(tool string) string {
	declared := map[string]string{}
	for _, name := range frontend {
		declared[name] = "frontend"
	}
	for _, spec := range k.engine.Tools(agent) {
		if spec.Effect == "" {
			spec.Effect = holdfast.EffectIdempotent
		}
		declared[spec.Name] = string(spec.Effect)
	}
	return func(tool string) string {
		if effect, ok := declared[tool]; ok {
			return effect
		}
		return "unknown"
	}
}

// effect describes the call for a person.
func (p *past) effect(effect string) threads.PastEffect {
	out := threads.PastEffect{CallID: p.call, Tool: p.made.name, Effect: effect, Arguments: json.RawMessage(p.made.arguments)}
	if !json.Valid(out.Arguments) {
		out.Arguments = thread.MustJSON(p.made.arguments)
	}
	if p.result != nil {
		out.Message, out.Failed = p.result.ID, thread.MarkOf(p.result).Failed
	}
	return out
}

// keepResults records the results that may be used again: never one that a client brought,
// because it would then count as what the server's own tool has said. What a call did to
// the shared state is the difference between the states before and after it; state is the
// one at the point that the thread goes back to.
func (k *Keeper) keepResults(ctx context.Context, t *thread.Thread, d *departure, state []byte) error {
	for n, p := range d.past {
		if p.result == nil || p.result.Imported() {
			continue
		}
		kept := thread.RecordedResult{Format: thread.FormatBefore, Tool: p.made.name, Content: p.result.Content, Failed: thread.MarkOf(p.result).Failed}
		after, changed, err := k.read.SharedAfter(ctx, t.Key, p.result.ID)
		if err != nil {
			return err
		}
		if changed {
			kept.Remember(state, after)
			state = after
		}
		id := fmt.Sprintf("%s/%06d", thread.CallHash(p.made.name, p.made.arguments), n)
		d.kept = append(d.kept, store.Value{Kind: store.KindReuse, ID: id, Data: thread.MustJSON(kept)})
	}
	return nil
}
