package main

// A tool that takes a while, and shows how far it has come.

import (
	"context"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/activity"
)

// Shelves are what the model asks to have counted.
type Shelves struct {
	Shelves []string `json:"shelves" jsonschema:"the names of the shelves"`
}

// CountShelves is the tool count_shelves. Pages show its progress, and each shelf as a step.
func CountShelves(count func(ctx context.Context, shelf string) (int, error)) holdfast.Tool {
	countAll := func(ctx context.Context, in Shelves) (string, error) {
		total, now := 0, activity.Progress{Title: "Counting the shelves", Total: float64(len(in.Shelves))}
		bar, err := activity.Show(ctx, activity.TypeProgress, now)
		if err != nil {
			return "", err
		}
		for _, shelf := range in.Shelves {
			finish, err := activity.Step(ctx, "shelf "+shelf)
			if err != nil {
				return "", err
			}
			n, err := count(ctx, shelf)
			finish()
			if err != nil {
				return "", err
			}
			total, now.Done = total+n, now.Done+1
			if err := bar.Set(ctx, now); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("There are %d items.", total), nil
	}
	return holdfast.NewTool("count_shelves", "Counts what is on the shelves.", countAll,
		holdfast.WithEffect(holdfast.EffectPure))
}
