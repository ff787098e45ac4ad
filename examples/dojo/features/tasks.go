package features

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/sharedstate"
)

// task is a step that the page shows, and ticks off once it is completed.
type task struct {
	Description string `json:"description"`
	Status      string `json:"status" jsonschema:"pending or completed"`
}

// progress is the document that this agent shares with its page.
type progress struct {
	Steps []task `json:"steps"`
}

var tasks = sharedstate.Of[progress]()

type newPlan struct {
	Steps []string `json:"steps" jsonschema:"what is to be done, in order"`
}

type finished struct {
	Index  int    `json:"index" jsonschema:"which step, counted from 0"`
	Status string `json:"status" jsonschema:"pending or completed"`
}

// agenticUI draws what it does: its tools change the shared state, and the page shows that. Each
// change is stored together with the call's result, so no step is done twice.
func agenticUI(takes time.Duration) holdfast.Agent {
	create := func(ctx context.Context, in newPlan) (string, error) {
		err := holdfast.UpdateState(ctx, tasks.Change(func(p *progress) error {
			p.Steps = make([]task, len(in.Steps))
			for i, text := range in.Steps {
				p.Steps[i] = task{text, "pending"}
			}
			return nil
		}))
		return "The plan is shown.", err
	}
	update := func(ctx context.Context, in finished) (string, error) {
		if err := work(ctx, takes); err != nil {
			return "", err
		}
		err := holdfast.UpdateState(ctx, tasks.Change(func(p *progress) error {
			if in.Index < 0 || in.Index >= len(p.Steps) {
				return fmt.Errorf("there is no step %d of %d", in.Index, len(p.Steps))
			}
			p.Steps[in.Index].Status = in.Status
			return nil
		}))
		return fmt.Sprintf("Step %d is %s.", in.Index, in.Status), err
	}
	return holdfast.Agent{
		Name:        "agentic_generative_ui",
		Description: "Works through a list, and shows how far it has come.",
		Instructions: "You carry out tasks. First call create_plan, then do one step after the other, and call " +
			"update_plan_step after each.",
		State: tasks.Options(),
		Tools: []holdfast.Tool{
			holdfast.NewTool("create_plan", "Shows the user the steps that you will take.", create),
			holdfast.NewTool("update_plan_step", "Shows the user what has become of a step.", update),
		},
	}
}
