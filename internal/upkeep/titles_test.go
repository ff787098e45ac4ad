package upkeep_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/looptest"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/threads"
)

// TestTitles: a thread is listed under its first message until a person gives it another
// title, which stays in later runs and when the thread goes back. None of that is activity.
func TestTitles(t *testing.T) {
	e, _ := looptest.Travelled(t)
	titles := upkeep.Titles{Keeper: e.Keeper}
	first := looptest.Must(e.Thread(t.Context(), looptest.Alice, "t"))(t)
	if first.Title == "" || first.CreatedAt.IsZero() || first.CreatedAt.After(first.UpdatedAt) {
		t.Fatalf("%+v", first)
	}
	mine, hidden := "mine", true
	got := looptest.Must(titles.Describe(t.Context(), looptest.Alice, "t", first.ETag, threads.Description{Title: &mine, Hidden: &hidden}))(t)
	again := looptest.Must(titles.Describe(t.Context(), looptest.Alice, "t", "", threads.Description{Title: &mine}))(t)
	if got.Title != mine || !got.Hidden || !got.UpdatedAt.Equal(first.UpdatedAt) || got.ETag == first.ETag || again.ETag != got.ETag {
		t.Errorf("%+v, then %+v", got, again)
	}
	cp := looptest.Checkpoints(t, e, "t")
	fork := looptest.Must(e.Fork(t.Context(), looptest.Alice, "t", threads.Travel{}))(t).Thread
	if fork.Title != mine || fork.Hidden || fork.CreatedAt.Before(first.CreatedAt) {
		t.Errorf("the fork is %+v", fork)
	}
	back := looptest.Must(e.Rewind(t.Context(), looptest.Alice, "t", threads.Travel{Checkpoint: cp[len(cp)-1].ID}))(t).Thread
	looptest.Resumed(t, e, "t", "r9")
	list := looptest.Must(e.Threads(t.Context(), looptest.Alice, back.UpdatedAt.AddDate(1, 0, 0), 10))(t)
	for _, info := range list {
		if info.Title != mine || info.Hidden != (info.ID == "t") || info.ID == "t" && !info.CreatedAt.Equal(first.CreatedAt) {
			t.Errorf("%+v", info)
		}
	}
	if len(list) != 2 {
		t.Errorf("%d threads", len(list))
	}
	var pub *holdfast.Error
	if _, err := titles.Describe(t.Context(), looptest.Alice, "t", "old", threads.Description{Title: &mine}); !errors.As(err, &pub) || pub.Code != codes.CheckpointConflict {
		t.Errorf("with an old ETag: %v", err)
	}
	bob := holdfast.Principal{Tenant: looptest.Alice.Tenant, User: "bob"}
	if _, err := titles.Describe(t.Context(), bob, "t", "", threads.Description{Title: &mine}); looptest.Code(err) != codes.NotFound {
		t.Errorf("somebody else: %v", err)
	}
}

// TestNoTitleWhileItRuns: only the owner of a run writes to its thread.
func TestNoTitleWhileItRuns(t *testing.T) {
	hold := make(chan struct{})
	slow := looptest.Tool("slow", holdfast.EffectPure, func(context.Context) (string, error) { <-hold; return "", nil })
	e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{Name: "a", Model: looptest.Say(looptest.Calls("slow", "{}"), holdfast.Delta{Text: "done"}), Tools: []holdfast.Tool{slow}})
	reply, err := e.Post(t.Context(), looptest.Alice, "", looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
	if err != nil {
		t.Fatal(err)
	}
	title := "mine"
	if _, err := (upkeep.Titles{Keeper: e.Keeper}).Describe(t.Context(), looptest.Alice, "t", "", threads.Description{Title: &title}); looptest.Code(err) != codes.RunInProgress {
		t.Errorf("got %v, want run_in_progress", err)
	}
	if info := looptest.Must(e.Thread(t.Context(), looptest.Alice, "t"))(t); info.Title != "go" {
		t.Errorf("%+v", info)
	}
	close(hold)
	looptest.Succeeded(t, looptest.Collect(t, reply, nil))
}
