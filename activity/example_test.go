package activity_test

import (
	"context"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/activity"
)

// A tool that takes a while shows how far it has come, and says in the stream what it does.
func Example() {
	type pages struct {
		Pages int `json:"pages"`
	}
	read := func(ctx context.Context, in pages) (string, error) {
		bar, err := activity.Show(ctx, activity.TypeProgress,
			activity.Progress{Title: "Reading", Total: float64(in.Pages)})
		if err != nil {
			return "", err
		}
		finish, err := activity.Step(ctx, "read")
		if err != nil {
			return "", err
		}
		defer finish()
		for page := range in.Pages {
			// … read it …
			err := bar.Set(ctx, activity.Progress{Title: "Reading", Done: float64(page + 1), Total: float64(in.Pages)})
			if err != nil {
				return "", err
			}
		}
		return "read", nil
	}
	tool := holdfast.NewTool("read", "reads a document", read)
	fmt.Println(tool.Spec().Name)
	// Output: read
}
