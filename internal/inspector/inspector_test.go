package inspector_test

import (
	"context"
	"encoding/json"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/inspector"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bob is another user than the one of most tests.
var bob = holdfast.Principal{Tenant: "acme", User: "bob"}

// of returns an inspector of an engine's threads that lets everybody in.
func of(e *looptest.Engine) *inspector.Inspector { return limited(e, nil) }

// allowed lets everybody in.
func allowed(context.Context, holdfast.Principal, access.Action, string) error { return nil }

// free is a price list without prices.
func free(usage []holdfast.Usage) (list []threads.Usage, _ json.Number) {
	return thread.PublicUsage(usage), ""
}

// limited returns one that refuses with an error what is not nil.
func limited(e *looptest.Engine, refused error) *inspector.Inspector {
	return inspector.New(inspector.Config{
		Store: e.Store,
		Allow: func(context.Context, holdfast.Principal, access.Action, string) error { return refused },
		Runs:  e.Runs,
		Tools: e.Tools,
		Price: free,
		Log: func(ctx context.Context, who holdfast.Principal, thread, run string, after store.Cursor,
			limit int) (*agui.Page, error) {
			return loop.Log(ctx, e.Engine, who, thread, run, after, limit)
		},
	})
}

// TestNotAllowed: whoever may not read learns nothing.
func TestNotAllowed(t *testing.T) {
	e, _ := looptest.Travelled(t)
	run := looptest.Must(e.Runs(t.Context(), looptest.Alice, "t", "", 0))(t)[0].ID
	in := limited(e, holdfast.Errorf(codes.Forbidden, "No."))
	for what, ask := range map[string]func() error{
		"log": func() error {
			_, err := in.Log(t.Context(), looptest.Alice, "t", run, store.Cursor{},
				1)
			return err
		},
		"usage":     func() error { _, err := in.Usage(t.Context(), looptest.Alice, "t"); return err },
		"work":      func() error { _, err := in.Work(t.Context(), looptest.Alice, "t"); return err },
		"calls":     func() error { _, err := in.Calls(t.Context(), looptest.Alice, "t", run, "", 1); return err },
		"questions": func() error { _, err := in.Questions(t.Context(), looptest.Alice, never, 1); return err },
	} {
		if code := looptest.Code(ask()); code != codes.Forbidden {
			t.Errorf("%s: %s", what, code)
		}
	}
	if page, err := of(e).Log(t.Context(), looptest.Alice, "t", run, store.Cursor{}, 1); err != nil || page.Next == "" {
		t.Errorf("the log of who may read: %+v, %v", page, err)
	}
}
