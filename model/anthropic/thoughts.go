package anthropic

// The model's earlier thinking in a request. Newer models bind a block of thinking to all that
// stood before it: the system text, the tools and the messages. A window, a summary or another
// tool changes that, and then the provider refuses the request unless it is asked to drop such
// blocks. Older models do not know the question, so it is only asked once the provider has
// said so.

import (
	"maps"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// thoughts is what a request has of earlier thinking.
type thoughts int

const (
	// whole: all of it.
	whole thoughts = iota
	// bound: what the provider finds to be valid.
	bound
	// bare: none.
	bare
)

// bindingBeta is the name of the provider's switch for bound thinking.
const bindingBeta = "thinking-binding-controls-2026-08-01"

// set adapts the parameters.
func (t thoughts) set(body map[string]any) {
	thinking, _ := body["thinking"].(map[string]any)
	switch {
	case t == bound:
		if thinking = maps.Clone(thinking); thinking == nil {
			// The answer does not say that models which bind thinking think without being
			// asked.
			thinking = map[string]any{"type": "adaptive"}
		}
		if thinking["block_binding"] == nil {
			thinking["block_binding"] = map[string]any{"prefix_mismatch_behavior": "drop_block"}
		}
		body["thinking"] = thinking
	case t == bare && thinking["type"] == "enabled":
		// It would want thinking before the latest calls.
		delete(body, "thinking")
	}
}

// known returns the form that the provider is known to take.
func (m *Model) known() thoughts {
	if m.binds.Load() {
		return bound
	}
	return whole
}

// by returns the client for a request.
func (m *Model) by(t thoughts) *modelhttp.Client {
	if t == bound {
		return m.client.With("Anthropic-Beta", bindingBeta)
	}
	return m.client
}

// amend returns what to send if the provider does not take its own thinking back: because
// something before it has changed, because another organization's key is used now, or
// because calls of another model stand where it wants thinking.
func (m *Model) amend(req *holdfast.ModelRequest, sent thoughts) modelhttp.Amend {
	return func(refused *holdfast.ModelError) (*modelhttp.Client, *modelhttp.Body) {
		next, said := bare, refused.Error()
		switch {
		case sent == whole && strings.Contains(said, "prefix_mismatch_behavior"):
			m.binds.Store(true)
			next = bound
		case sent == bare || !refusesThinking(said):
			return nil, nil
		}
		sent = next
		body, _, err := m.write(req, next)
		if err != nil {
			return nil, nil
		}
		return m.by(next), body
	}
}

// refusesThinking reports whether an error is about blocks of thinking in the conversation.
func refusesThinking(said string) bool {
	if !strings.Contains(said, "messages.") || !strings.Contains(said, "thinking") {
		return false
	}
	for _, words := range []string{"signature", "cannot be modified", "must match", "but found", "must be `thinking`"} {
		if strings.Contains(said, words) {
			return true
		}
	}
	return false
}
