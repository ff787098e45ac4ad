package activity_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/activity"
)

// shown is a run that notes what is shown.
type shown []string

func (s *shown) context(ctx context.Context) context.Context {
	return activity.ContextWith(ctx, &activity.Run{
		Show: func(_ context.Context, c activity.Change) error {
			*s = append(*s, fmt.Sprintf("%s %q %q %s", c.Type, c.Call, c.Name, c.Content))
			return nil
		},
		Step: func(_ context.Context, name string) (func(), error) {
			*s = append(*s, "begin "+name)
			return func() { *s = append(*s, "end "+name) }, nil
		},
	})
}

// TestShow: an activity belongs to the call in the context, or to the name that it has.
func TestShow(t *testing.T) {
	t.Parallel()
	var s shown
	ctx := s.context(t.Context())
	bar, err := activity.Show(holdfast.ContextWithCall(ctx, holdfast.ToolCall{ID: "c1"}, nil), activity.TypeProgress,
		activity.Progress{Title: "Reading", Total: 2})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := activity.Named(ctx, activity.TypePlan, "trip", activity.Plan{
		Items: []activity.PlanItem{{Text: "pack", Status: activity.Running}},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(bar.Set(ctx, activity.Progress{Title: "Reading", Done: 1, Total: 2}),
		plan.Set(ctx, json.RawMessage("{\"a\":\"\xff\"}")))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`holdfast.progress "c1" "" {"title":"Reading","done":0,"total":2}`,
		`holdfast.plan "" "trip" {"items":[{"text":"pack","status":"running"}]}`,
		`holdfast.progress "c1" "" {"title":"Reading","done":1,"total":2}`,
		"holdfast.plan \"\" \"trip\" {\"a\":\"\uFFFD\"}",
	}
	if !slices.Equal(s, want) {
		t.Errorf("shown:\n got %q\nwant %q", s, want)
	}
}

// TestRefused: the error says what is wrong.
func TestRefused(t *testing.T) {
	t.Parallel()
	var s shown
	ctx := s.context(t.Context())
	show := func(ctx context.Context, kind string, content any) error {
		_, err := activity.Show(ctx, kind, content)
		return err
	}
	step := func(ctx context.Context, name string) error {
		_, err := activity.Step(ctx, name)
		return err
	}
	for want, err := range map[string]error{
		"an activity has a type":           show(ctx, "", activity.Plan{}),
		"content of an activity is a JSON": show(ctx, "acme.list", []int{1}),
		"unsupported type":                 show(ctx, "acme.func", func() {}),
		"too large: 300008 bytes, of 262144": show(ctx, "acme.map",
			map[string]string{"a": strings.Repeat("x", 300_000)}),
		"1 to 256 bytes":  step(ctx, ""),
		"1 to 256 bytes ": step(ctx, strings.Repeat("s", 257)),
		"without control": step(ctx, "a\nb"),
		"text of 1":       step(ctx, "\xff"),
	} {
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%q: %v", want, err)
		}
	}
	if err := show(ctx, "acme.map", map[string]string{"a": strings.Repeat("x", 300_000)}); !errors.Is(err,
		activity.ErrTooLarge) {
		t.Error(err)
	}
	for _, err := range []error{show(t.Context(), "acme.x", activity.Plan{}), step(t.Context(), "s")} {
		if !errors.Is(err, holdfast.ErrNoRun) {
			t.Errorf("outside a run: %v", err)
		}
	}
	if len(s) > 0 {
		t.Errorf("shown: %q", s)
	}
}

// TestWithin: what a middleware leaves alone is that of the run, and what no run takes is dropped.
func TestWithin(t *testing.T) {
	t.Parallel()
	var s shown
	outer := s.context(t.Context())
	louder := activity.ContextWith(outer, &activity.Run{
		Show: func(_ context.Context, c activity.Change) error {
			c.Name = strings.ToUpper(c.Name)
			return c.Show(outer)
		},
	})
	slower := activity.ContextWith(outer, &activity.Run{
		Step: func(_ context.Context, name string) (func(), error) { return activity.Step(outer, "slow "+name) },
	})
	for _, ctx := range []context.Context{louder, slower, activity.ContextWith(t.Context(), &activity.Run{})} {
		if _, err := activity.Named(ctx, "acme.x", "a", struct{}{}); err != nil {
			t.Error(err)
		}
		finish, err := activity.Step(ctx, "s")
		if err != nil {
			t.Fatal(err)
		}
		finish()
	}
	want := []string{`acme.x "" "A" {}`, "begin s", "end s", `acme.x "" "a" {}`, "begin slow s", "end slow s"}
	if !slices.Equal(s, want) {
		t.Errorf("shown:\n got %q\nwant %q", s, want)
	}
}
