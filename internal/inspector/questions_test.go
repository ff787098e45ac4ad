package inspector_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/inspector"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// never is no time.
var never time.Time

// asker asks two questions at once.
func asker() holdfast.Agent {
	ask := looptest.Tool("ask", holdfast.EffectIdempotent, func(ctx context.Context) (string, error) {
		if holdfast.CallFrom(ctx).Answer == nil {
			return "", &holdfast.Interrupt{Reason: "input_required", Message: "Sure?"}
		}
		return "yes", nil
	})
	return holdfast.Agent{Name: "a", Model: looptest.TwoCalls("ask", "ask"), Tools: []holdfast.Tool{ask}}
}

// asked returns the threads and runs of questions.
func asked(list *threads.QuestionList) (out []string) {
	for _, q := range list.Questions {
		out = append(out, q.Thread.ID+" "+q.Run+" "+q.Interrupt.Message)
	}
	return out
}

// TestQuestions: all open questions of one's threads, the newest first, in pages that never
// tear a thread apart; and none of anybody else, or of a thread that asks nothing.
func TestQuestions(t *testing.T) {
	for _, index := range []bool{false, true} {
		testQuestions(t, index)
	}
}

func testQuestions(t *testing.T, index bool) {
	synctest.Test(t, func(t *testing.T) {
		e := looptest.Start(t, memstore.New(), nil, asker(),
			holdfast.Agent{Name: "calm", Model: looptest.Say(holdfast.Delta{Text: "fine"})})
		in := by(e, index)
		if list := looptest.Must(in.Questions(t.Context(), looptest.Alice, never, 10))(t); len(list.Questions) != 0 ||
			list.Questions == nil || !list.Next.IsZero() {
			t.Errorf("without threads: %+v", list)
		}
		var want []string
		for i := range 250 { // more than are looked at at once
			time.Sleep(time.Second)
			id, agent := fmt.Sprintf("t%d", i), "calm"
			if i%50 == 0 {
				agent, want = "a", append([]string{id + " r Sure?", id + " r Sure?"}, want...)
			}
			reply, err := e.Owner.Post(t.Context(), looptest.Alice, agent,
				looptest.RunInput(id, "r", looptest.UserSays("u", "hello")))
			looptest.Collect(t, reply, err)
		}
		all := looptest.Must(in.Questions(t.Context(), looptest.Alice, never, 200))(t)
		if got := asked(all); !slices.Equal(got, want) || !all.Next.IsZero() {
			t.Errorf("%q, next %v; want %q", got, all.Next, want)
		}
		if q := all.Questions[0]; q.Thread.Agent != "a" || q.Thread.Title != "hello" || q.Interrupt.ID == "" ||
			!q.AskedAt.Equal(looptest.Must(e.Keeper.Thread(t.Context(), looptest.Alice, "t200"))(t).UpdatedAt) {
			t.Errorf("%+v", q)
		}
		var paged []string
		before := never
		for pages := 0; pages < 10; pages++ {
			list := looptest.Must(in.Questions(t.Context(), looptest.Alice, before, 2))(t)
			if paged = append(paged, asked(list)...); list.Next.IsZero() {
				break
			}
			before = list.Next
		}
		if !slices.Equal(paged, want) {
			t.Errorf("in pages: %q, want %q", paged, want)
		}
		if list := looptest.Must(in.Questions(t.Context(), bob, never, 200))(t); len(list.Questions) != 0 {
			t.Errorf("somebody else is shown %+v", list)
		}
	})
}

// TestQuestionsOfMany: a user with very many threads that ask nothing gets an empty page, and
// where to go on.
func TestQuestionsOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := looptest.Start(t, memstore.New(), nil, asker(),
			holdfast.Agent{Name: "calm", Model: looptest.Say(holdfast.Delta{Text: "fine"})})
		for i := range 1001 {
			agent := "calm"
			if i == 0 {
				agent = "a"
			}
			reply, err := e.Owner.Post(t.Context(), looptest.Alice, agent,
				looptest.RunInput(fmt.Sprint(i), "r", looptest.UserSays("u", "hello")))
			looptest.Collect(t, reply, err)
			time.Sleep(time.Millisecond)
		}
		list := looptest.Must(of(e).Questions(t.Context(), looptest.Alice, never, 1))(t)
		if len(list.Questions) != 0 || list.Next.IsZero() {
			t.Fatalf("%+v", list)
		}
		if list = looptest.Must(of(e).Questions(t.Context(), looptest.Alice, list.Next,
			1))(t); len(list.Questions) != 2 || !list.Next.IsZero() {
			t.Errorf("%+v", list)
		}
		list = looptest.Must(by(e, true).Questions(t.Context(), looptest.Alice, never, 1))(t)
		if len(list.Questions) != 2 || !list.Next.IsZero() {
			t.Errorf("by the index: %+v", list)
		}
	})
}

// distant is a store whose heads take a while to arrive.
type distant struct{ *memstore.Store }

func (s distant) Head(ctx context.Context, key store.ThreadKey) (*store.Head, error) {
	time.Sleep(40 * time.Millisecond)
	return s.Store.Head(ctx, key)
}

// TestListsFromFarAway: the threads of a page are not read one after the other.
func TestListsFromFarAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New()
		e := looptest.Start(t, db, nil, asker())
		for i := range 50 {
			reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput(fmt.Sprint(i), "r", looptest.UserSays("u", "hello")))
			looptest.Collect(t, reply, err)
			time.Sleep(time.Millisecond)
		}
		far := distant{db}
		in := inspector.New(inspector.Config{Store: far, Indexed: func() bool { return true }})
		began := time.Now()
		list := looptest.Must(in.Questions(t.Context(), looptest.Alice, never, 50))(t)
		if took := time.Since(began); len(list.Questions) != 100 || took > 4*40*time.Millisecond {
			t.Errorf("%d questions take %s", len(list.Questions), took)
		}
		other := looptest.Start(t, far, nil, asker())
		began = time.Now()
		infos := looptest.Must(other.Keeper.Threads(t.Context(), looptest.Alice, never, 50))(t)
		if took := time.Since(began); len(infos) != 50 || took > 4*40*time.Millisecond {
			t.Errorf("%d threads take %s", len(infos), took)
		}
	})
}

// TestQuestionsAtOnce: threads that began to ask in the same millisecond are in pages in the order of
// their last activity, each once.
func TestQuestionsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := looptest.Start(t, memstore.New(), nil, asker())
		var want []string
		for i := range 30 {
			id := fmt.Sprint((i * 7) % 30)
			reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
				looptest.RunInput(id, "r", looptest.UserSays("u", "hello")))
			looptest.Collect(t, reply, err)
			want = append([]string{id + " r Sure?", id + " r Sure?"}, want...)
			time.Sleep(100 * time.Microsecond)
		}
		for _, index := range []bool{false, true} {
			var got []string
			for before, pages := never, 0; pages < 20; pages++ {
				list := looptest.Must(by(e, index).Questions(t.Context(), looptest.Alice, before, 3))(t)
				got = append(got, asked(list)...)
				if before = list.Next; before.IsZero() {
					break
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("by the index %t: %q, want %q", index, got, want)
			}
		}
	})
}

// faulty is a store of which some heads cannot be read.
type faulty struct {
	store.Store
	list, head error
}

func (f *faulty) Threads(
	ctx context.Context, who holdfast.Principal, before time.Time, limit int,
) ([]store.Head, error) {
	if f.list != nil {
		return nil, f.list
	}
	heads, err := f.Store.Threads(ctx, who, before, limit)
	return append(heads, store.Head{Key: looptest.KeyOf("damaged"), Unreadable: store.ErrUnreadable}), err
}

func (f *faulty) Find(ctx context.Context, q store.Query) ([]store.Found, error) {
	if f.list != nil {
		return nil, f.list
	}
	return f.Store.Find(ctx, q)
}

func (f *faulty) Head(ctx context.Context, key store.ThreadKey) (*store.Head, error) {
	if f.head != nil {
		return nil, f.head
	}
	return f.Store.Head(ctx, key)
}

// TestQuestionsTrouble: a thread that cannot be read hides no other; a store that does not
// answer is an error.
func TestQuestionsTrouble(t *testing.T) {
	e := looptest.Start(t, memstore.New(), nil, asker())
	reply, err := e.Owner.Post(t.Context(), looptest.Alice, "",
		looptest.RunInput("t", "r", looptest.UserSays("u", "hello")))
	looptest.Collect(t, reply, err)
	f := &faulty{Store: e.Store}
	index := false
	in := inspector.New(inspector.Config{Store: f, Indexed: func() bool { return index }})
	for _, c := range []struct {
		list, head error
		questions  int
		code       string
	}{
		{nil, nil, 2, ""},
		{nil, store.ErrNotFound, 0, ""},
		{nil, store.ErrUnreadable, 0, ""},
		{nil, errors.New("away"), 0, codes.StoreUnavailable},
		{errors.New("away"), nil, 0, codes.StoreUnavailable},
	} {
		for _, index = range []bool{false, true} {
			f.list, f.head = c.list, c.head
			list, err := in.Questions(t.Context(), looptest.Alice, never, 10)
			if looptest.Code(err) != c.code || err == nil && len(list.Questions) != c.questions {
				t.Errorf("%v, %v: %+v, %v", c.list, c.head, list, err)
			}
		}
	}
}

// downgraded is a store of which a newer version has written the newest threads.
type downgraded struct {
	store.Store
	since time.Time
}

func (d *downgraded) Threads(
	ctx context.Context, who holdfast.Principal, before time.Time, limit int,
) ([]store.Head, error) {
	heads, err := d.Store.Threads(ctx, who, before, limit)
	for i, h := range heads {
		if !h.UpdatedAt.Before(d.since) {
			heads[i] = store.Head{
				Key:        h.Key,
				User:       h.User,
				UpdatedAt:  h.UpdatedAt.Truncate(time.Minute),
				Unreadable: store.ErrVersionTooNew,
			}
		}
	}
	return heads, err
}

// TestQuestionsBehindUnreadable: threads that cannot be read do not hide the older ones, however
// many they are.
func TestQuestionsBehindUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := looptest.Start(t, memstore.New(), nil, asker(),
			holdfast.Agent{Name: "calm", Model: looptest.Say(holdfast.Delta{Text: "fine"})})
		post := func(id, agent string) {
			reply, err := e.Owner.Post(t.Context(), looptest.Alice, agent,
				looptest.RunInput(id, "r", looptest.UserSays("u", "hello")))
			looptest.Collect(t, reply, err)
			time.Sleep(time.Minute)
		}
		post("old", "a")
		newer := time.Now()
		for i := range 150 { // more than are looked at at once
			post(fmt.Sprint(i), "calm")
		}
		in := inspector.New(inspector.Config{
			Store:   &downgraded{e.Store, newer},
			Indexed: func() bool { return false },
		})
		list := looptest.Must(in.Questions(t.Context(), looptest.Alice, never, 10))(t)
		if got := asked(list); len(got) != 2 || !list.Next.IsZero() {
			t.Errorf("%q, next %v", got, list.Next)
		}
	})
}
