package loop

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

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
}

// putReuse keeps the results.
func putReuse(c *holdfast.Commit, all []past) {
	for n, p := range all {
		if p.result == nil {
			continue
		}
		id := fmt.Sprintf("%s/%06d", callHash(p.made.name, p.made.arguments), n)
		c.Put = append(c.Put, holdfast.Value{Kind: holdfast.KindReuse, ID: id, Data: mustJSON(reusable{
			Format: Format, Tool: p.made.name, Content: p.result.Content, Failed: isFailed(p.result),
		})})
	}
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
		return finished{call: call, reused: v.ID, result: holdfast.ToolResult{Text: m.Text, Parts: m.Parts, Failed: recorded.Failed}}, true
	}
	return finished{}, false
}

// isFailed reports whether a stored result is an error's text.
func isFailed(m *agui.Message) bool {
	var mark struct {
		Holdfast struct {
			Failed bool `json:"failed"`
		} `json:"holdfast"`
	}
	return len(m.Metadata) > 0 && json.Unmarshal(m.Metadata, &mark) == nil && mark.Holdfast.Failed
}
