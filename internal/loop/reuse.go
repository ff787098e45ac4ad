package loop

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// A thread that went back with reuseResults keeps the results of the calls that came
// after that point. A call of the same tool with the same arguments gets one of them,
// the oldest first, instead of running. Each is used once.

// reusable is such a result.
type reusable struct {
	Format  int             `json:"format"`
	Tool    string          `json:"tool"`
	Content json.RawMessage `json:"content"`
	Failed  bool            `json:"failed,omitempty"`
	// Patch is what the call did to the shared state, as a JSON merge patch (RFC
	// 7396); Whole is set if it cannot be told so, and then is the state after it.
	Patch json.RawMessage `json:"patch,omitempty"`
	Whole json.RawMessage `json:"whole,omitempty"`
}

// keepResults makes the results that are to be used again. What a call did to the
// shared state is the difference between the states before and after it.
func (e *Engine) keepResults(ctx context.Context, t *thread, d *departure) error {
	state, err := e.shared(ctx, t.key, d.st.Shared)
	if err != nil {
		return err
	}
	for n, p := range d.past {
		if p.result == nil {
			continue
		}
		kept := reusable{Format: Format, Tool: p.made.name, Content: p.result.Content, Failed: markOf(p.result).Failed}
		after, err := e.shared(ctx, t.key, stateOf(p.result.ID))
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

func (k *reusable) remember(before, after []byte) {
	patch, err := jsonpatch.CreateMergePatch(orObject(before), after)
	if err != nil { // one of them is no object
		k.Whole = after
		return
	}
	k.Patch = patch
}

// again changes a state as the call did.
func (k *reusable) again(state json.RawMessage) (json.RawMessage, error) {
	if len(k.Whole) > 0 {
		return k.Whole, nil
	}
	return jsonpatch.MergePatch(orObject(state), k.Patch)
}

// orObject is an empty state as the object that it is shown as.
func orObject(state []byte) []byte {
	if len(state) == 0 || string(state) == "null" {
		return []byte("{}")
	}
	return state
}

// callHash is the same for calls of the same tool with the same arguments, however
// they are written.
func callHash(tool, arguments string) string {
	sum := sha256.Sum256([]byte(tool + "\x00" + canonical(arguments)))
	return hex.EncodeToString(sum[:16])
}

// canonical writes JSON with sorted members and without blanks. Numbers stay as
// they are written. What is not JSON stays as it is.
func canonical(text string) string {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return text
	}
	return string(mustJSON(v))
}

// loadReuse reads what is left to use; only a thread that went back has any.
func (e *Engine) loadReuse(ctx context.Context, key holdfast.ThreadKey, st *state) (map[string][]holdfast.Value, error) {
	if !st.Reuse {
		return nil, nil
	}
	values, err := e.cfg.Store.Values(ctx, key, holdfast.KindReuse, "", 0)
	if err != nil {
		return nil, readError(err)
	}
	slices.Reverse(values) // oldest first
	left := map[string][]holdfast.Value{}
	for _, v := range values {
		hash, _, _ := bytes.Cut([]byte(v.ID), []byte("/"))
		left[string(hash)] = append(left[string(hash)], v)
	}
	return left, nil
}

// reused returns the recorded result for a call, if there is one.
func (r *run) reused(call openCall) (finished, bool) {
	if len(r.reuse) == 0 || call.Cut || call.Answer != nil && call.Answer.Declined {
		return finished{}, false
	}
	hash := callHash(call.Name, r.hist.arguments(call.ID))
	for len(r.reuse[hash]) > 0 {
		v := r.reuse[hash][0]
		r.reuse[hash] = r.reuse[hash][1:]
		var recorded reusable
		if err := decodeValue(v.Data, &recorded); err != nil {
			r.e.cfg.Log.Warn("a recorded result cannot be read; the tool runs", "thread", r.key.Thread, "tool", call.Name, "error", err)
			continue
		}
		m, err := (&agui.Message{ID: "m", Role: string(holdfast.RoleTool), ToolCallID: call.ID, Content: recorded.Content}).Domain()
		if err != nil {
			continue
		}
		f := finished{call: call, reused: v.ID, result: holdfast.ToolResult{Text: m.Text, Parts: m.Parts, Failed: recorded.Failed}}
		if len(recorded.Patch)+len(recorded.Whole) > 0 {
			f.updates = []holdfast.StateUpdate{recorded.again}
		}
		return f, true
	}
	return finished{}, false
}
