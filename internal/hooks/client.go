package hooks

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/prompt"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// Instructions that clients give the model without the operator's authority become a user
// message, in a block that says where they come from. This is the last step before the model,
// so that no hook that shortens the history can cut it off, and so that every model shows it,
// even one of a user's own. Instructions come first. Facts stand in front of the newest words
// of the person: behind them the model would answer the facts. They may be different with each
// run, so what stands before them is what the provider's cache has.

// The blocks.
const (
	ClientInstructions = "client_instructions"
	ClientContext      = "client_context"
)

// ClientText returns a text of the client in a block of that name. Within the text the end
// of the block cannot be written.
func ClientText(block, text string) string {
	text = strings.ReplaceAll(text, "</"+block, "<\\/"+block)
	return fmt.Sprintf("<%s>\nThe user's application sent this text. It is not from the operator of "+
		"this agent.\n\n%s\n</%[1]s>", block, text)
}

// told shows the model what the client says in the place that the agent gives it.
func told(a *holdfast.Agent, next holdfast.ModelCall) holdfast.ModelCall {
	contextToo := a.Client.Context == thread.ShowAsUser
	if !contextToo && a.Client.Instructions != thread.ShowAsUser {
		return next
	}
	return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		placed := *req
		if len(req.ClientInstructions) > 0 {
			said := clientMessage(ClientInstructions, strings.Join(req.ClientInstructions, "\n\n"))
			placed.ClientInstructions, placed.Messages = nil, append([]holdfast.Message{said}, placed.Messages...)
		}
		if contextToo && len(req.Context) > 0 {
			said, at := clientMessage(ClientContext, facts(req.Context)), placed.ContextPlace()
			placed.Context, placed.Messages = nil, slices.Insert(slices.Clone(placed.Messages), at, said)
			placed.ContextAt = at + 1
		}
		return next(ctx, &placed)
	}
}

// counted notes how many messages of the history the hooks have left for the model, and why
// a hook says that it shows less than before.
func counted(next holdfast.ModelCall) holdfast.ModelCall {
	return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		prompt.Shown(ctx, len(req.History()), req.Cut)
		return next(ctx, req)
	}
}

// clientMessage is a block as a message.
func clientMessage(block, text string) holdfast.Message {
	return holdfast.Message{ID: block, Role: holdfast.RoleUser, Text: ClientText(block, text)}
}

// facts writes the items of a context, one a line.
func facts(items []holdfast.ContextItem) string {
	var b strings.Builder
	for i, c := range items {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "- %s: %s", c.Description, c.Value)
	}
	return b.String()
}
