package upkeep

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
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
	out := threads.PastEffect{
		CallID:    p.call,
		Tool:      p.made.name,
		Effect:    effect,
		Arguments: json.RawMessage(p.made.arguments),
	}
	if !json.Valid(out.Arguments) {
		out.Arguments = thread.MustJSON(p.made.arguments)
	}
	if p.result != nil {
		out.Message, out.Failed, out.Reusable = p.result.ID, thread.MarkOf(p.result).Failed, p.reusable()
	}
	return out
}

// reusable reports whether the result may be used again: never one that a client brought,
// because it would then count as what the server's own tool has said.
func (p *past) reusable() bool { return p.result != nil && !p.result.Imported() }

// chooseResults returns an error unless each of the calls of which the results are wanted has
// one that may be used again.
func (d *departure) chooseResults(to threads.Travel) error {
	if to.Reuse != nil && to.ReuseResults {
		return holdfast.Errorf(codes.InvalidInput, "reuse and reuseResults say different things.").
			WithHint("Send reuse with the calls whose results are used again, or reuseResults for all of them.").
			With("field", "reuse")
	}
	for _, id := range to.Reuse {
		if !slices.ContainsFunc(d.past, func(p past) bool { return p.call == id && p.reusable() }) {
			return holdfast.Errorf(codes.InvalidInput,
				"Call %q has no result after that point that can be used again.", id).
				WithHint("A request with preview: true lists the calls since then; those that "+
					"are reusable can be named.").
				With("field", "reuse").
				With("toolCallId", id)
		}
	}
	d.chosen = to.Reuse
	return nil
}

// keepResults records the results that are to be used again. A call's effect on the shared
// state is the difference between the states before and after it; state is the one at the
// point that the thread goes back to.
func (k *Keeper) keepResults(ctx context.Context, t *thread.Thread, d *departure, state []byte) error {
	sharedAfter := k.read.SharedAfter(ctx, t.Key)
	for n, p := range d.past {
		if !p.reusable() {
			continue
		}
		kept := thread.RecordedResult{
			Format:  thread.FormatBefore,
			Tool:    p.made.name,
			Content: p.result.Content,
			Failed:  thread.MarkOf(p.result).Failed,
		}
		after, changed, err := sharedAfter(p.result.ID)
		if err != nil {
			return err
		}
		if changed {
			kept.Remember(state, after)
			state = after
		}
		if d.chosen != nil && !slices.Contains(d.chosen, p.call) {
			continue
		}
		id := fmt.Sprintf("%s/%06d", thread.CallHash(p.made.name, p.made.arguments), n)
		d.kept = append(d.kept, store.Value{Kind: store.KindReuse, ID: id, Data: thread.MustJSON(kept)})
	}
	return nil
}
