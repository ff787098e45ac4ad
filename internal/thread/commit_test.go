package thread_test

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// TestListings: a thread asks from when it came to rest, and is due from the moment on at which
// GoesOn begins to hold, however its calls stand.
func TestListings(t *testing.T) {
	active := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	result := &thread.OutsideResult{Text: "ok", At: active}
	waits := func(d time.Duration) thread.Call {
		o := &thread.OutsideCall{Waits: true}
		if d != 0 {
			o.ExpiresAt = active.Add(d)
		}
		return thread.Call{ID: "c", Outside: o}
	}
	finished := thread.Call{ID: "c", Outside: &thread.OutsideCall{Waits: true, Result: result}}
	asks := thread.Call{ID: "c", Interrupt: &agui.Interrupt{ID: "i"}}
	page := thread.Call{ID: "c", Frontend: true}
	const never = time.Duration(-1)
	for name, c := range map[string]struct {
		calls []thread.Call
		due   time.Duration
	}{
		"no calls":                      {nil, never},
		"one that expires":              {[]thread.Call{waits(time.Second)}, time.Second},
		"two":                           {[]thread.Call{waits(time.Minute), waits(time.Second)}, time.Minute},
		"one that never does":           {[]thread.Call{waits(time.Minute), waits(0)}, never},
		"one that is finished":          {[]thread.Call{finished}, 0},
		"another is finished":           {[]thread.Call{finished, waits(time.Second)}, time.Second},
		"the page has to do something":  {[]thread.Call{page, waits(time.Second)}, never},
		"a person has to say something": {[]thread.Call{asks, waits(time.Second)}, never},
	} {
		t.Run(name, func(t *testing.T) {
			st := ended(t)
			st.Calls = c.calls
			var want []store.Listing
			if c.due != never {
				want = []store.Listing{{List: store.List{Name: store.ListDue}, At: active.Add(c.due)}}
				if before := active.Add(c.due - 1); c.due > 0 && st.GoesOn(before) {
					t.Error("it goes on earlier")
				}
				if !st.GoesOn(active.Add(c.due)) {
					t.Error("it does not go on then")
				}
			} else if st.GoesOn(active.Add(time.Hour)) {
				t.Error("it goes on")
			}
			c := &store.Commit{
				Key:       store.ThreadKey{Tenant: "acme", Thread: "t"},
				Expect:    store.Position{Next: 9},
				User:      "alice",
				UpdatedAt: active,
			}
			got := without(thread.Listings(c, st), store.ListEnded)
			if got == nil || !slices.Equal(got, want) {
				t.Errorf("it is in %v, want %v", got, want)
			}
		})
	}
}

// without leaves out the lists with these names.
func without(listings []store.Listing, names ...string) []store.Listing {
	return slices.DeleteFunc(listings, func(l store.Listing) bool { return slices.Contains(names, l.Name) })
}

// TestStatusLists: a thread is in the lists of its status by when it came to it. While it runs, no commit of the run
// moves it, and it is in the list of its run.
func TestStatusLists(t *testing.T) {
	made := time.Date(2026, 11, 28, 11, 0, 0, 0, time.UTC)
	active := made.Add(time.Hour)
	run := thread.RunList("acme", "alice", "r1")
	own := func(name string) store.List { return store.List{Name: name, Tenant: "acme", Group: "alice"} }
	every := func(name string) store.List { return store.List{Name: name, Tenant: "acme"} }
	for status, c := range map[threads.Status]struct {
		change func(*thread.State)
		lists  []store.List
		at     time.Time
	}{
		threads.StatusRunning: {func(*thread.State) {},
			[]store.List{own(store.ListRunning), every(store.ListTenantRunning), run}, made},
		threads.StatusStopped: {func(st *thread.State) { _ = st.Stop(thread.CutOff(0)) },
			[]store.List{own(store.ListStopped), every(store.ListTenantStopped)}, active},
		threads.StatusInterrupted: {func(st *thread.State) {
			st.Calls = []thread.Call{{ID: "c", Interrupt: &agui.Interrupt{ID: "i"}}}
			_ = st.Wait()
		}, []store.List{own(store.ListAsking), every(store.ListTenantAsking)}, active},
		threads.StatusIdle: {func(st *thread.State) { _ = st.End(holdfast.OutcomeSuccess) }, nil, active},
	} {
		st := thread.New()
		st.CreatedAt = made
		if err := st.Begin("r1", "a"); err != nil {
			t.Fatal(err)
		}
		c.change(st)
		commit := &store.Commit{Key: store.ThreadKey{Tenant: "acme", Thread: "t"}, User: "alice", UpdatedAt: active}
		var want []store.Listing
		for _, l := range c.lists {
			want = append(want, store.Listing{List: l, At: c.at})
		}
		got := without(thread.Listings(commit, st), store.ListEnded)
		if st.Status() != status || !slices.Equal(got, want) {
			t.Errorf("%s, which is %s: it is in %v, want %v", status, st.Status(), got, want)
		}
	}
	old := thread.New() // a version that did not note when has made it
	if err := old.Begin("r1", "a"); err != nil {
		t.Fatal(err)
	}
	for _, l := range thread.Listings(&store.Commit{UpdatedAt: active}, old) {
		if l.At.UnixMilli() != 0 {
			t.Errorf("it is at %v", l)
		}
	}
	if thread.RunList("t", "ab", "c") == thread.RunList("t", "a", "bc") {
		t.Error("the runs of two users have one list")
	}
}

// ended is the state of a thread whose run has ended.
func ended(t *testing.T) *thread.State {
	t.Helper()
	st := thread.New()
	if err := st.Begin("r1", "a"); err != nil {
		t.Fatal(err)
	}
	if err := st.End(holdfast.OutcomeSuccess); err != nil {
		t.Fatal(err)
	}
	return st
}

// TestSaveWithoutTime: a commit that waits for its time lists the thread by it, as one that has it.
func TestSaveWithoutTime(t *testing.T) {
	st := thread.New()
	if err := st.Begin("r1", "a"); err != nil {
		t.Fatal(err)
	}
	later := &store.Commit{Key: store.ThreadKey{Tenant: "acme", Thread: "t"}, User: "alice"}
	thread.Save(later, st)
	if places := without(later.Listings, store.ListRunning, store.ListTenantRunning, store.ListRun); len(places) > 0 ||
		later.Listings == nil {
		t.Errorf("a thread that runs is in %v", places)
	}
	st.Calls = []thread.Call{{ID: "c", Interrupt: &agui.Interrupt{ID: "i"}}}
	if err := st.Wait(); err != nil {
		t.Fatal(err)
	}
	thread.Save(later, st)
	later.UpdatedAt = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	now := *later
	thread.Save(&now, st)
	thread.Timed(later)
	want := store.Listing{List: store.List{Name: store.ListAsking, Tenant: "acme", Group: "alice"}, At: later.UpdatedAt}
	rests := store.Listing{List: store.List{Name: store.ListEnded}, At: later.UpdatedAt}
	every := store.Listing{List: store.List{Name: store.ListTenantAsking, Tenant: "acme"}, At: later.UpdatedAt}
	if !slices.Equal(later.Listings, now.Listings) || !slices.Equal(now.Listings, []store.Listing{want, every, rests}) {
		t.Errorf("%v, and with its time %v", later.Listings, now.Listings)
	}
}

// TestListedForRetention: a thread at rest is listed by when it was last active until retention is
// through with it, and then, if nobody has to do anything, until it is deleted; and by its oldest
// checkpoint, if a newer one lets that go.
func TestListedForRetention(t *testing.T) {
	active := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	taken := active.Add(-time.Hour)
	in := func(name string, at time.Time) store.Listing {
		return store.Listing{List: store.List{Name: name}, At: at}
	}
	takes := func(st *thread.State, n, keep int) {
		for i := range n {
			thread.AddCheckpoint(&store.Commit{}, st, thread.SourceLoop, 1, taken.Add(time.Duration(i)*time.Minute),
				keep)
		}
	}
	for name, c := range map[string]struct {
		change func(*thread.State)
		want   []store.Listing
	}{
		"it has just ended": {func(*thread.State) {}, []store.Listing{in(store.ListEnded, active)}},
		"it is tidy":        {func(st *thread.State) { st.Tidied = 9 }, []store.Listing{in(store.ListResting, active)}},
		"it has moved on":   {func(st *thread.State) { st.Tidied = 8 }, []store.Listing{in(store.ListEnded, active)}},
		"a call is outside": {func(st *thread.State) {
			st.Tidied, st.Calls = 9, []thread.Call{{ID: "c", Outside: &thread.OutsideCall{Waits: true}}}
		}, nil},
		"one checkpoint": {func(st *thread.State) { st.Tidied = 9; takes(st, 1, 100) },
			[]store.Listing{in(store.ListResting, active)}},
		"the newest is kept": {func(st *thread.State) { st.Tidied = 9; takes(st, 3, 1) },
			[]store.Listing{in(store.ListResting, active)}},
		"three": {func(st *thread.State) { st.Tidied = 9; takes(st, 3, 100) },
			[]store.Listing{in(store.ListResting, active), in(store.ListAging, taken)}},
		"two, after all others went": {func(st *thread.State) {
			takes(st, 3, 100)
			st.Tidied = 9
			thread.NoteKept(&st.Tended, taken.Add(time.Second), true)
			takes(st, 1, 100)
		}, []store.Listing{in(store.ListResting, active), in(store.ListAging, taken.Add(time.Second))}},
		"nobody knows when": {func(st *thread.State) {
			takes(st, 2, 100)
			st.Tended = thread.Tended{Tidied: 9}
		}, []store.Listing{in(store.ListResting, active), in(store.ListAging, time.Unix(0, 0).UTC())}},
		"it runs": {func(st *thread.State) {
			takes(st, 2, 100)
			st.Tidied = 5
			if err := st.Begin("r2", "a"); err != nil {
				t.Fatal(err)
			}
		}, []store.Listing{in(store.ListAging, taken)}},
		"its run waits": {func(st *thread.State) {
			if err := st.Begin("r2", "a"); err != nil {
				t.Fatal(err)
			}
			st.Waiting = &threads.Waiting{Until: active.Add(time.Hour)}
		}, []store.Listing{in(store.ListDue, active.Add(time.Hour))}},
	} {
		t.Run(name, func(t *testing.T) {
			st := ended(t)
			c.change(st)
			got := without(thread.Listings(&store.Commit{Expect: store.Position{Next: 9}, UpdatedAt: active}, st),
				store.ListRunning, store.ListTenantRunning, store.ListRun)
			if !slices.Equal(got, c.want) {
				t.Errorf("it is in %v, want %v", got, c.want)
			}
		})
	}
}
