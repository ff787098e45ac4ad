package features

import (
	"context"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/middleware/permission"
	"github.com/holdfast-agents/holdfast/sharedstate"
)

// text is the document that this agent shares with its page.
type text struct {
	Document string `json:"document" jsonschema:"the whole document, in Markdown"`
}

var written = sharedstate.Of[text]()

// predictedDocument writes a document that a person sees grow, and then keeps or refuses.
func predictedDocument() holdfast.Agent {
	state := written.Options()
	state.Show = "all"
	// While the model writes the call, watchers see the text in the document. It is stored only by the tool.
	state.Predict = []sharedstate.Prediction{{Tool: "write_document", Argument: "document", Path: "/document"}}
	write := func(ctx context.Context, in text) (string, error) {
		return "The document is kept.", holdfast.UpdateState(ctx, written.Change(func(t *text) error {
			*t = in
			return nil
		}))
	}
	return holdfast.Agent{
		Name:         "predictive_state_updates",
		Description:  "Writes a document, which is seen while it is written.",
		Instructions: "You write the document that you share with the user. Pass all of it to write_document.",
		State:        state,
		Tools: []holdfast.Tool{
			holdfast.NewTool("write_document", "Replaces the document that you share with the user.", write),
		},
		Middleware: []holdfast.Middleware{permission.New(permission.Options{
			Rules: []permission.Rule{{Tool: "write_document", Then: permission.Ask, Remember: []permission.Scope{}}},
		})},
	}
}
