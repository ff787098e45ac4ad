package tools

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/activity"
)

type carryOutArgs struct {
	Title   string   `json:"title,omitempty" jsonschema:"what all of it is for"`
	Items   []string `json:"items" jsonschema:"what is to be done, in order, 1 to 50 items"`
	Seconds float64  `json:"seconds,omitempty" jsonschema:"how long each item takes, from 0 to 5"`
}

// The bounds of carry_out.
const (
	maxItems       = 50
	maxItemSeconds = 5
)

// CarryOut is the tool carry_out. It does nothing but show how it would be done: a plan whose
// items are ticked off, a bar of progress, and a step for each item.
func CarryOut() holdfast.Tool {
	return holdfast.NewTool("carry_out", "Works through a list and shows the person how far it has come.", carryOut,
		holdfast.WithEffect(holdfast.EffectPure),
		holdfast.WithTimeout(maxItems*maxItemSeconds*time.Second+10*time.Second))
}

func carryOut(ctx context.Context, args carryOutArgs) (string, error) {
	switch n := len(args.Items); {
	case n < 1 || n > maxItems:
		return "", fmt.Errorf("items must have 1 to %d items, not %d", maxItems, n)
	case args.Seconds < 0 || args.Seconds > maxItemSeconds:
		return "", fmt.Errorf("seconds must be between 0 and %d, not %v", maxItemSeconds, args.Seconds)
	}
	plan := activity.Plan{Title: args.Title, Items: make([]activity.PlanItem, len(args.Items))}
	for i, text := range args.Items {
		plan.Items[i] = activity.PlanItem{Text: text, Status: activity.Pending}
	}
	for i := range plan.Items {
		if err := carryOutItem(ctx, &plan, i, time.Duration(args.Seconds*float64(time.Second))); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("All %d items are done.", len(plan.Items)), showPlan(ctx, &plan, len(plan.Items))
}

// carryOutItem does an item of the plan, which takes so long.
func carryOutItem(ctx context.Context, plan *activity.Plan, i int, takes time.Duration) error {
	plan.Items[i].Status = activity.Running
	if err := showPlan(ctx, plan, i); err != nil {
		return err
	}
	finish, err := activity.Step(ctx, plan.Items[i].Text)
	if err != nil {
		return err
	}
	defer finish()
	t := time.NewTimer(takes)
	defer t.Stop()
	select {
	case <-t.C:
		plan.Items[i].Status = activity.Done
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the work was cut short: %w", context.Cause(ctx))
	}
}

// showPlan shows the plan, of which so many items are done.
func showPlan(ctx context.Context, plan *activity.Plan, done int) error {
	if _, err := activity.Show(ctx, activity.TypePlan, plan); err != nil {
		return err
	}
	now := activity.Progress{Title: plan.Title, Done: float64(done), Total: float64(len(plan.Items))}
	if done < len(plan.Items) {
		now.Text = plan.Items[done].Text
	}
	_, err := activity.Show(ctx, activity.TypeProgress, now)
	return err
}
