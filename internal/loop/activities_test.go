package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/activity"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/journal"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// bar is a progress with so much done, too long to be shown as a whole each time.
func bar(done int) activity.Progress {
	return activity.Progress{Title: "Reading the orders of the last year, one after the other", Done: float64(done),
		Total: 3}
}

// worker is an agent whose tool works for three seconds and shows how far it has come.
func worker(hang int) holdfast.Agent {
	work := func(ctx context.Context, _ struct{}) (string, error) {
		a, err := activity.Show(ctx, activity.TypeProgress, bar(0))
		if err != nil {
			return "", err
		}
		finish, err := activity.Step(ctx, "work")
		if err != nil {
			return "", err
		}
		defer finish()
		for done := 1; done <= 3; done++ {
			time.Sleep(time.Second)
			if done == hang {
				<-ctx.Done()
				return "", ctx.Err()
			}
			if err := a.Set(ctx, bar(done)); err != nil {
				return "", err
			}
		}
		return "worked", nil
	}
	return holdfast.Agent{
		Name:  "a",
		Model: looptest.Say(looptest.Calls("work", `{}`), holdfast.Delta{Text: "done"}),
		Tools: []holdfast.Tool{holdfast.NewTool("work", "works", work)},
	}
}

// acted returns what the events say about activities and steps.
func acted(events []agui.Event) (said []string) {
	for _, ev := range events {
		switch ev := ev.(type) {
		case agui.ActivitySnapshot:
			said = append(said, "shows "+string(ev.Content))
		case agui.ActivityDelta:
			said = append(said, "changes "+string(ev.Patch))
		case agui.StepStarted:
			said = append(said, "begins "+ev.StepName)
		case agui.StepFinished:
			said = append(said, "ends "+ev.StepName)
		}
	}
	return said
}

// activitiesIn returns the contents of the activities in a list of messages.
func activitiesIn(t *testing.T, messages []json.RawMessage) (contents []string) {
	t.Helper()
	for _, raw := range messages {
		if m := looptest.Must(agui.DecodeMessage(raw))(t); m.Role == string(holdfast.RoleActivity) {
			contents = append(contents, string(m.Content))
		}
	}
	return contents
}

const (
	barShown   = `{"title":"Reading the orders of the last year, one after the other","done":%d,"total":3}`
	barChanges = `changes [{"op":"replace","path":"/done","value":%d}]`
)

// TestActivityChanges: people see each change while the tool works, and later what it shows at
// last, in the place of its call; so do forks, and pages that come in the middle.
func TestActivityChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New()
		e := looptest.Start(t, db, nil, worker(0))
		reply := looptest.Must(e.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
		time.Sleep(1500 * time.Millisecond)
		late := looptest.Must(e.Owner.Attach(t.Context(), looptest.Alice, "t", 0))(t)
		events := looptest.Collect(t, reply, nil)
		looptest.Succeeded(t, events)
		want := []string{
			"shows " + fmt.Sprintf(barShown, 0), "begins work", fmt.Sprintf(barChanges, 1), fmt.Sprintf(barChanges, 2),
			fmt.Sprintf(barChanges, 3), "ends work",
		}
		if said := acted(events); !slices.Equal(said, want) {
			t.Errorf("streamed:\n got %q\nwant %q", said, want)
		}
		seen := looptest.Collect(t, late, nil)
		if said := acted(seen); !slices.Equal(said, append([]string{"begins work"}, want[3:]...)) {
			t.Errorf("a late page is told %q", said)
		}
		for _, ev := range seen {
			if shot, is := ev.(agui.MessagesSnapshot); is {
				m := shot.Messages[len(shot.Messages)-1]
				if string(m.Content) != fmt.Sprintf(barShown, 1) {
					t.Errorf("a late page is shown %s", agui.Append(nil, shot))
				}
			}
		}
		all := looptest.Must(e.Messages(t.Context(), looptest.Alice, "t"))(t)
		if got := activitiesIn(t, all); len(all) != 5 || len(got) != 1 || got[0] != fmt.Sprintf(barShown, 3) {
			t.Errorf("the history has %q", all)
		}
		sound(t, db, "t")
		to := threads.Travel{Thread: "f", Message: looptest.Must(agui.DecodeMessage(all[1]))(t).ID}
		looptest.Must(e.Keeper.Fork(t.Context(), looptest.Alice, "t", to))(t)
		forked := looptest.Must(e.Messages(t.Context(), looptest.Alice, "f"))(t)
		if got := activitiesIn(t, forked); len(forked) != 4 || !slices.Equal(got, activitiesIn(t, all)) {
			t.Errorf("the fork has %s", forked)
		}
		looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r2", looptest.UserSays("u2", "more"))))
	})
}

// TestActivityTakenOver: another process continues the activities of the calls that it makes
// again, and closes the step that the dead one has left open.
func TestActivityTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mortal := &looptest.Mortal{Store: memstore.New()}
		one := looptest.Start(t, mortal, nil, worker(3))
		looptest.Must(one.Owner.Post(t.Context(), looptest.Alice, "",
			looptest.RunInput("t", "r1", looptest.UserSays("u1", "go"))))(t)
		time.Sleep(5 * time.Second)
		mortal.Dead.Store(true)
		two := looptest.Start(t, mortal.Store, nil, worker(0))
		time.Sleep(20 * time.Second)
		synctest.Wait()
		key := looptest.KeyOf("t")
		var events []agui.Event
		for _, rec := range looptest.Must(two.Store.Records(t.Context(), key, store.Cursor{}, 1000))(t) {
			events = append(events, looptest.Must(thread.EventOf(rec.Data))(t))
		}
		want := []string{
			"shows " + fmt.Sprintf(barShown, 0), "begins work", fmt.Sprintf(barChanges, 1), fmt.Sprintf(barChanges, 2),
			"ends work", fmt.Sprintf(barChanges, 0), "begins work", fmt.Sprintf(barChanges, 1),
			fmt.Sprintf(barChanges, 2), fmt.Sprintf(barChanges, 3), "ends work",
		}
		if said := acted(events); !slices.Equal(said, want) {
			t.Errorf("the log has:\n got %q\nwant %q", said, want)
		}
		all := looptest.Must(two.Messages(t.Context(), looptest.Alice, "t"))(t)
		if got := activitiesIn(t, all); len(got) != 1 || got[0] != fmt.Sprintf(barShown, 3) {
			t.Errorf("the history has %q", got)
		}
		sound(t, two.Store, "t")
	})
}

// TestActivitiesOfATurn: hooks and tools show one activity of each name for each message of a
// user, and bounds hold for each of them.
func TestActivitiesOfATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var many, over error
		var inside context.Context
		quick := func(ctx context.Context, _ struct{}) (string, error) {
			inside = ctx
			plan, err := activity.Named(ctx, activity.TypePlan, "plan", activity.Plan{Title: "tool"})
			for i := range 500 { // faster than it can be stored
				err = errors.Join(err, plan.Set(ctx, activity.Plan{Title: fmt.Sprint("quick ", i)}))
			}
			for i := range 500 {
				time.Sleep(10 * time.Millisecond)
				err = errors.Join(err, plan.Set(ctx, activity.Plan{Title: fmt.Sprint("slow ", i)}))
			}
			for i := range 100 {
				_, failed := activity.Named(ctx, "acme.many", fmt.Sprint(i), struct{}{})
				many = errors.Join(many, failed)
			}
			return "", err
		}
		e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
			Name:  "a",
			Model: looptest.Say(looptest.Calls("quick", `{}`), holdfast.Delta{Text: "done"}),
			Tools: []holdfast.Tool{holdfast.NewTool("quick", "q", quick)},
			Middleware: []holdfast.Middleware{{
				Name: "test.planner",
				BeforeIteration: func(ctx context.Context, it *holdfast.Iteration) error {
					_, err := activity.Named(ctx, activity.TypePlan, "plan",
						activity.Plan{Title: fmt.Sprint("hook ", it.Number)})
					return err
				},
			}},
		})
		events := looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		looptest.Succeeded(t, events)
		if n := len(acted(events)) - 99; n < 200 || n > 250 {
			t.Errorf("%d changes were shown", n)
		}
		if !errors.Is(many, activity.ErrTooMany) {
			t.Errorf("100 activities and one more: %v", many)
		}
		all := looptest.Must(e.Messages(t.Context(), looptest.Alice, "t"))(t)
		if got := activitiesIn(t, all); len(got) != 100 || got[0] != `{"title":"hook 1","items":null}` {
			t.Errorf("%d activities, the first %s", len(got), got[:1])
		}
		if shown := looptest.Show(events); !strings.Contains(shown, "slow 499") {
			t.Error("the last change is not shown")
		}
		looptest.Succeeded(t, looptest.Posted(t, e, looptest.RunInput("t", "r2", looptest.UserSays("u2", "again"))))
		all = looptest.Must(e.Messages(t.Context(), looptest.Alice, "t"))(t)
		if got := activitiesIn(t, all); len(got) != 101 {
			t.Errorf("%d activities after another message", len(got))
		}
		_, over = activity.Show(inside, activity.TypePlan, activity.Plan{})
		_, ended := activity.Step(inside, "late")
		if !errors.Is(over, journal.ErrClosed) || !errors.Is(ended, journal.ErrClosed) {
			t.Errorf("after the run: %v, %v", over, ended)
		}
	})
}

// TestSteps: a step that two tools do is one, and ends with the last of them; what a retry takes
// back is no step.
func TestSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nap := func(name string, d time.Duration) holdfast.Tool {
			return looptest.Tool(name, holdfast.EffectPure, func(ctx context.Context) (string, error) {
				finish, err := activity.Step(ctx, "look up")
				if err != nil {
					return "", err
				}
				time.Sleep(d)
				finish()
				finish() // which counts once
				return name, nil
			})
		}
		around := holdfast.Middleware{Name: "test.around", Run: func(next holdfast.RunCall) holdfast.RunCall {
			return func(ctx context.Context, it *holdfast.Iteration) (string, error) {
				finish, err := activity.Step(ctx, "all")
				if err != nil {
					return "", err
				}
				defer finish()
				if _, err := activity.Step(ctx, "never ended"); err != nil {
					return "", err
				}
				return next(ctx, it)
			}
		}}
		e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
			Name: "a", Model: looptest.TwoCalls("short", "long"), Middleware: []holdfast.Middleware{around},
			Tools: []holdfast.Tool{nap("short", time.Second), nap("long", 2*time.Second)},
		})
		events := looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		looptest.Succeeded(t, events)
		want := []string{
			"begins all", "begins never ended", "begins look up", "ends look up", "ends all", "ends never ended",
		}
		if said := acted(events); !slices.Equal(said, want) {
			t.Errorf("streamed %q", said)
		}
		sound(t, e.Store, "t")
	})
}

// TestTooManySteps: the head names the steps that are open, so there cannot be any number of them.
func TestTooManySteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var many error
		open := looptest.Tool("open", holdfast.EffectPure, func(ctx context.Context) (string, error) {
			for n := range 100 {
				if _, err := activity.Step(ctx, fmt.Sprint("step ", n)); err != nil {
					return "", err
				}
			}
			_, again := activity.Step(ctx, "step 7")
			_, many = activity.Step(ctx, "one more")
			return "opened", again
		})
		e := looptest.Start(t, memstore.New(), nil, holdfast.Agent{
			Name:  "a",
			Model: looptest.Say(looptest.Calls("open", `{}`), holdfast.Delta{Text: "done"}),
			Tools: []holdfast.Tool{open},
		})
		events := looptest.Posted(t, e, looptest.RunInput("t", "r1", looptest.UserSays("u1", "go")))
		looptest.Succeeded(t, events)
		if !errors.Is(many, activity.ErrTooMany) {
			t.Errorf("100 steps and one more: %v", many)
		}
		if said := acted(events); len(said) != 200 {
			t.Errorf("%d events of 100 steps", len(said))
		}
	})
}
