package upkeep_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/filestore"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// TestTitles: a thread is listed under its first message until a person gives it another
// title, which stays in later runs and when the thread goes back. None of that is activity.
func TestTitles(t *testing.T) {
	e, _ := looptest.Travelled(t)
	titles := upkeep.Titles{Keeper: e.Keeper}
	first := looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "t"))(t)
	if first.Title == "" || first.CreatedAt.IsZero() || first.CreatedAt.After(first.UpdatedAt) {
		t.Fatalf("%+v", first)
	}
	mine, hidden := "mine", true
	got := looptest.Must(titles.Describe(t.Context(), looptest.Alice, "t", first.ETag,
		threads.Description{Title: &mine, Hidden: &hidden}))(t)
	again := looptest.Must(titles.Describe(t.Context(), looptest.Alice, "t", "", threads.Description{Title: &mine}))(t)
	if got.Title != mine || !got.Hidden || !got.UpdatedAt.Equal(first.UpdatedAt) || got.ETag == first.ETag ||
		again.ETag != got.ETag {
		t.Errorf("%+v, then %+v", got, again)
	}
	cp := looptest.Checkpoints(t, e, "t")
	fork := looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t", threads.Travel{}))(t).Thread
	if fork.Title != mine || fork.Hidden || fork.CreatedAt.Before(first.CreatedAt) {
		t.Errorf("the fork is %+v", fork)
	}
	back := looptest.Must(e.Keeper.Rewind(t.Context(), looptest.Alice, "t",
		threads.Travel{Checkpoint: cp[len(cp)-1].ID}))(t).Thread
	looptest.Resumed(t, e, "t", "r9")
	list := looptest.Must(e.Keeper.Threads(t.Context(), looptest.Alice, back.UpdatedAt.AddDate(1, 0, 0), 10))(t)
	for _, info := range list {
		if info.Title != mine || info.Hidden != (info.ID == "t") ||
			info.ID == "t" && !info.CreatedAt.Equal(first.CreatedAt) {
			t.Errorf("%+v", info)
		}
	}
	if len(list) != 2 {
		t.Errorf("%d threads", len(list))
	}
	var pub *holdfast.Error
	if _, err := titles.Describe(t.Context(), looptest.Alice, "t", "old",
		threads.Description{Title: &mine}); !errors.As(err, &pub) || pub.Code != codes.CheckpointConflict {
		t.Errorf("with an old ETag: %v", err)
	}
	bob := holdfast.Principal{Tenant: looptest.Alice.Tenant, User: "bob"}
	if _, err := titles.Describe(t.Context(), bob, "t", "",
		threads.Description{Title: &mine}); looptest.Code(err) != codes.NotFound {
		t.Errorf("somebody else: %v", err)
	}
}

// holding is an agent whose run waits in a tool until it may go on.
func holding(hold <-chan struct{}) holdfast.Agent {
	wait := looptest.Tool("wait", holdfast.EffectPure, func(ctx context.Context) (string, error) {
		select {
		case <-hold:
			return "", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	return holdfast.Agent{
		Name:  "a",
		Model: looptest.Say(looptest.Calls("wait", "{}"), holdfast.Delta{Text: "done"}),
		Tools: []holdfast.Tool{wait},
	}
}

// TestTitleWhileItRuns: a thread that runs gets another title at once, by its owner, also if
// another process was asked for it. The stream says so, and the run keeps it.
func TestTitleWhileItRuns(t *testing.T) {
	for name, open := range map[string]func() store.Store{
		"memory": func() store.Store { return memstore.New() },
		"file":   func() store.Store { return looptest.Must(filestore.Open(t.TempDir(), filestore.Options{}))(t) },
	} {
		t.Run(name, func(t *testing.T) {
			shared, hold := open(), make(chan struct{})
			t.Cleanup(func() { _ = shared.Close() })
			e := looptest.Start(t, shared, nil, holding(hold))
			other := looptest.Start(t, shared, nil, holding(hold))
			reply := looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
			hidden := true
			for i, k := range []*upkeep.Keeper{e.Keeper, other.Keeper, e.Keeper} {
				title := []string{" first\n", "second", ""}[i]
				info := looptest.Must(upkeep.Titles{
					Keeper: k,
				}.Describe(t.Context(), looptest.Alice, "t", "",
					threads.Description{Title: &title, Hidden: &hidden}))(t)
				if want := []string{"first", "second", "go"}[i]; info.Title != want || !info.Hidden ||
					info.Status != threads.StatusRunning {
					t.Errorf("%+v, want the title %q", info, want)
				}
			}
			before := looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "t"))(t)
			last := "last"
			if _, err := (upkeep.Titles{Keeper: e.Keeper}).Describe(t.Context(), looptest.Alice, "t", before.ETag,
				threads.Description{Title: &last}); looptest.Code(err) != codes.RunInProgress {
				t.Errorf("with an ETag: %v, want run_in_progress", err)
			}
			looptest.Must(upkeep.Titles{
				Keeper: other.Keeper,
			}.Describe(t.Context(), looptest.Alice, "t", "", threads.Description{Title: &last}))(t)
			for _, d := range []threads.Description{{Title: &last, Hidden: &hidden}, {}} { // changes nothing
				if info := looptest.Must(upkeep.Titles{Keeper: e.Keeper}.Describe(t.Context(), looptest.Alice, "t", "",
					d))(t); info.Title != last || !info.Hidden {
					t.Errorf("%+v", info)
				}
			}
			close(hold)
			events := looptest.Collect(t, reply, nil)
			looptest.Succeeded(t, events)
			var said []string
			for _, ev := range events {
				if c, ok := ev.(agui.Custom); ok && c.Name == "holdfast.described" {
					said = append(said, string(c.Value))
				}
			}
			if want := []string{
				`{"title":"first","hidden":true}`,
				`{"title":"second","hidden":true}`,
				`{"title":"go","hidden":true}`,
				`{"title":"last"}`,
			}; !slices.Equal(said, want) {
				t.Errorf("the stream says %q, want %q", said, want)
			}
			info := looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "t"))(t)
			if left := looptest.Must(shared.Inbox(t.Context(), looptest.KeyOf("t")))(t); info.Title != last ||
				!info.Hidden || len(left) != 0 {
				t.Errorf("after the run: %+v, and in the inbox %v", info, left)
			}
		})
	}
}

// TestTitleOutlivesTheOwner: a process that takes a run over gives the thread the title that
// its owner was asked for and did not live to store.
func TestTitleOutlivesTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, hold := memstore.New(), make(chan struct{})
		mortal := &looptest.Mortal{Store: shared}
		e := looptest.Start(t, mortal, nil, holding(nil))
		looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
		synctest.Wait()
		mortal.Dead.Store(true)
		other := looptest.Start(t, shared, nil, holding(hold))
		title := "mine"
		info := looptest.Must(upkeep.Titles{
			Keeper: other.Keeper,
		}.Describe(t.Context(), looptest.Alice, "t", "", threads.Description{Title: &title}))(t)
		if info.Title != title || info.Status != threads.StatusRunning {
			t.Errorf("%+v", info)
		}
		close(hold)
		synctest.Wait()
		if info := looptest.Must(other.Keeper.Thread(t.Context(), looptest.Alice, "t"))(t); info.Title != title ||
			info.Status != threads.StatusIdle {
			t.Errorf("after the run: %+v", info)
		}
	})
}

// TestTitleInTheMiddleOfAnAnswer: an answer that is being written, and the cancel that ends
// it, come through as if nobody had changed the title.
func TestTitleInTheMiddleOfAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		words := make([]holdfast.Delta, 100)
		for i := range words {
			words[i].Text = fmt.Sprint(i, " ")
		}
		e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{Name: "a", Model: looptest.Slowly(words)})
		reply := looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
		for i := range 10 {
			time.Sleep(30 * time.Millisecond)
			title := fmt.Sprint("title ", i)
			if info := looptest.Must(upkeep.Titles{
				Keeper: e.Keeper,
			}.Describe(t.Context(), looptest.Alice, "t", "",
				threads.Description{Title: &title}))(t); info.Title != title {
				t.Errorf("%+v", info)
			}
		}
		looptest.Must(e.Owner.Cancel(t.Context(), looptest.Alice, "t", "r1"))(t)
		title := "the end"
		if info := looptest.Must(upkeep.Titles{
			Keeper: e.Keeper,
		}.Describe(t.Context(), looptest.Alice, "t", "", threads.Description{Title: &title}))(t); info.Title != title {
			t.Errorf("%+v", info)
		}
		events := looptest.Collect(t, reply, nil)
		shown := looptest.Texts(t, e, "t")
		info := looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "t"))(t)
		if len(shown) != 2 || !strings.HasPrefix(shown[1], "assistant:0 1 2 3 ") ||
			info.Outcome != holdfast.OutcomeCancelled || info.Title != title {
			t.Errorf("%q, %+v\n%s", shown, info, looptest.Show(events))
		}
	})
}
