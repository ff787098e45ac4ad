package quota_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/quota"
	"github.com/holdfast-agents/holdfast/store"
)

var (
	alice = holdfast.Principal{Tenant: "acme", User: "alice"}
	bob   = holdfast.Principal{Tenant: "acme", User: "bob"}
	eve   = holdfast.Principal{Tenant: "evil", User: "eve"}

	serial atomic.Int64
)

// limiter returns a Limiter with what a test changes.
func limiter(t *testing.T, ledger store.Ledger, change func(*quota.Config)) *quota.Limiter {
	cfg := quota.Config{
		Ledger:   ledger,
		Now:      clock.Wall,
		Log:      slog.New(slog.NewTextHandler(t.Output(), nil)),
		Rejected: func(string, string) {},
		NewID:    func(prefix string) string { return fmt.Sprint(prefix, serial.Add(1)) },
	}
	change(&cfg)
	return quota.New(cfg)
}

// scopeOf returns whose limit an error is about.
func scopeOf(err error) any {
	var e *holdfast.Error
	if !errors.As(err, &e) || e.Code != codes.LimitExceeded {
		return err
	}
	return e.Details["scope"]
}

// TestWhoseLimit: a tenant's own limits take the place of the general ones, one by one, and
// of several tenants each has its share unless it has a limit.
func TestWhoseLimit(t *testing.T) {
	t.Parallel()
	several := true
	l := limiter(t, memstore.New(), func(c *quota.Config) {
		c.PerUser.Runs, c.Share, c.Several = 2, 3, func() bool { return several }
		c.Tenants = map[string]quota.Pair{"evil": {PerTenant: quota.Bounds{Runs: 4}, PerUser: quota.Bounds{Runs: 10}}}
	})
	for i, step := range []struct {
		who  holdfast.Principal
		want any
	}{
		{alice, nil}, {alice, nil}, {alice, "user"}, {bob, nil}, {bob, "tenant"},
		{eve, nil}, {eve, nil}, {eve, nil}, {eve, nil}, {eve, "tenant"},
	} {
		err := l.TakeRun(step.who)
		if step.want == nil && err != nil || step.want != nil && scopeOf(err) != step.want {
			t.Errorf("run %d of %v: %v, want %v", i, step.who, err, step.want)
		}
	}
	several = false
	if err := l.TakeRun(bob); err != nil {
		t.Errorf("a single tenant has only a share: %v", err)
	}
}

// TestRightsDoNotMatter: requests of a user count together, with whatever rights they come,
// and end as requests of that user.
func TestRightsDoNotMatter(t *testing.T) {
	t.Parallel()
	l := limiter(t, memstore.New(), func(c *quota.Config) { c.PerUser.Runs, c.PerUser.Threads = 1, 1 })
	with := func() holdfast.Principal {
		who := alice
		who.Rights = &access.Rights{Roles: []access.Role{access.RoleUser}}
		return who
	}
	for range 3 {
		if err := l.TakeRun(with()); err != nil {
			t.Fatal(err)
		}
		if scopeOf(l.TakeRun(with())) != "user" {
			t.Error("a second run of the user is not refused")
		}
		l.FreeRun(alice)
	}
	stored, err := l.Admit(t.Context(), with(), true)
	if err != nil {
		t.Fatal(err)
	}
	stored(true)
	if _, err := l.Admit(t.Context(), with(), true); scopeOf(err) != "user" {
		t.Errorf("a second thread of the user: %v", err)
	}
}

// TestStreamsAreCountedExactly, even if many open and close them at the same time, and closing
// one twice frees one.
func TestStreamsAreCountedExactly(t *testing.T) {
	t.Parallel()
	var refused atomic.Int64
	l := limiter(t, memstore.New(), func(c *quota.Config) {
		c.PerTenant.Streams, c.Rejected = 5, func(string, string) { refused.Add(1) }
	})
	var open, most, failed atomic.Int64
	var wg sync.WaitGroup
	for n := range 50 {
		wg.Go(func() {
			for range 50 {
				closed, err := l.OpenStream([]holdfast.Principal{alice, bob}[n%2])
				if err != nil {
					failed.Add(1)
					continue
				}
				now := open.Add(1)
				for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
				}
				open.Add(-1)
				closed()
				closed()
			}
		})
	}
	wg.Wait()
	if most.Load() > 5 || refused.Load() != failed.Load() {
		t.Errorf("%d streams were open at a time; %d were refused, %d reported", most.Load(), failed.Load(),
			refused.Load())
	}
	for n := range 6 {
		if _, err := l.OpenStream(alice); (err == nil) != (n < 5) {
			t.Errorf("afterwards, stream %d: %v", n, err)
		}
	}
}

// TestNoLimits: without limits nothing is refused and nothing is counted in the store.
func TestNoLimits(t *testing.T) {
	t.Parallel()
	var none *quota.Limiter
	for _, l := range []*quota.Limiter{none, limiter(t, nil, func(*quota.Config) {})} {
		stored, err := l.Admit(t.Context(), alice, true)
		if err != nil {
			t.Fatal(err)
		}
		stored(true)
		closed, err := l.OpenStream(alice)
		if err := errors.Join(err, l.TakeRun(alice)); err != nil {
			t.Fatal(err)
		}
		closed()
		l.HoldRun(alice)
		l.FreeRun(alice)
		l.FreeRun(alice)
		l.Wrote(alice, 1)
		l.Deleted(alice, 1)
		l.Flush(t.Context())
		if due, err := l.CountDue(t.Context()); due || err != nil || l.Counts() {
			t.Errorf("something is counted: %v", err)
		}
	}
}

// TestThreadsAreReserved: of several processes that make threads at the same time, none
// goes over the limit, and a thread that was not made in the end leaves its place.
func TestThreadsAreReserved(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	var processes []*quota.Limiter
	for range 3 {
		processes = append(processes, limiter(t, s, func(c *quota.Config) { c.PerTenant.Threads = 10 }))
	}
	var made atomic.Int64
	var wg sync.WaitGroup
	for n := range 60 {
		wg.Go(func() {
			stored, err := processes[n%3].Admit(t.Context(), []holdfast.Principal{alice, bob}[n%2], true)
			if err == nil {
				made.Add(1)
				stored(made.Load() > 5)
			} else if scopeOf(err) != "tenant" {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if made.Load() != 10 {
		t.Errorf("%d threads were allowed at a time, want 10", made.Load())
	}
	for _, l := range processes {
		l.Flush(t.Context())
	}
	used, err := s.Used(t.Context(), "acme", []string{"usage/threads/added/tenant"})
	if err != nil || used[0] > 5 {
		t.Errorf("%d threads are counted, five at least were not made: %v", used[0], err)
	}
}

// unsteady is a ledger that does not answer for a time.
type unsteady struct {
	store.Ledger
	fails atomic.Bool
}

var errAway = errors.New("the store is away")

func (u *unsteady) Reserve(ctx context.Context, r *store.Reservation) error {
	if u.fails.Load() {
		return errAway
	}
	return u.Ledger.Reserve(ctx, r)
}

func (u *unsteady) Settle(ctx context.Context, tenant, id string, actual map[string]int64) error {
	if u.fails.Load() {
		return errAway
	}
	return u.Ledger.Settle(ctx, tenant, id, actual)
}

// TestNothingIsForgotten: what cannot be written while the store is away is written later,
// once, for any number of users, whatever their names.
func TestNothingIsForgotten(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	u := &unsteady{Ledger: s}
	l := limiter(t, u, func(c *quota.Config) { c.PerTenant.Bytes = 1 << 30 })
	long := holdfast.Principal{Tenant: "acme", User: strings.Repeat("x", store.MaxName)}
	u.fails.Store(true)
	for n := range 100 {
		l.Wrote(holdfast.Principal{Tenant: "acme", User: fmt.Sprint("user", n)}, 10)
	}
	l.Wrote(long, 7)
	l.Flush(t.Context())
	l.Wrote(alice, -4)
	l.Deleted(bob, 3)
	l.Flush(t.Context())
	u.fails.Store(false)
	l.Flush(t.Context())
	l.Flush(t.Context())
	used, err := s.Used(t.Context(), "acme", []string{
		"usage/bytes/added/tenant",
		"usage/bytes/removed/tenant",
		"usage/threads/removed/tenant",
		"usage/bytes/added/user/user99",
		"usage/bytes/removed/user/bob",
	})
	if want := []int64{1007, 7, 1, 10, 3}; err != nil || fmt.Sprint(used) != fmt.Sprint(want) {
		t.Errorf("counted are %v, want %v: %v", used, want, err)
	}
}

// TestOneProcessCounts: of several processes one counts everything, once an hour.
func TestOneProcessCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		change := func(c *quota.Config) { c.PerUser.Bytes = 1 }
		one, other := limiter(t, s, change), limiter(t, s, change)
		for i, step := range []struct {
			l    *quota.Limiter
			wait time.Duration
			want bool
		}{{one, 0, true}, {other, 0, false}, {one, time.Minute, false}, {other, time.Hour, true}, {one, 0, false}} {
			time.Sleep(step.wait)
			if due, err := step.l.CountDue(t.Context()); due != step.want || err != nil {
				t.Errorf("step %d: %v, %v", i, due, err)
			}
		}
	})
}

// TestCountBesideChanges: what changes while everything is counted, or what the ledger did
// not have yet, is not put right, because it is not wrong; anything else is.
func TestCountBesideChanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, counted, after int64 // bytes that were written, were found, and are written then
		wrong                  int
		want                   int64
	}{
		"written, and not in the ledger yet": {0, 600, 600, 0, 600},
		"written while others are counted":   {1000, 1000, 5000, 0, 6000},
		"removed while others are counted":   {6000, 6000, -5000, 0, 1000},
		"changed before it was counted":      {1000, 3000, 5000, 0, 6000},
		"lost":                               {0, 1000, 0, 2, 1000},
		"counted twice":                      {2000, 1000, 0, 2, 1000},
		"lost, and written meanwhile":        {1000, 5000, 1000, 2, 5000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New()
				l := limiter(t, s, func(c *quota.Config) { c.PerUser.Bytes = 1 })
				go l.Run(t.Context())
				stored, err := l.Admit(t.Context(), alice, true)
				if err != nil {
					t.Fatal(err)
				}
				stored(true)
				l.Wrote(alice, c.before)
				l.Flush(t.Context())
				count, err := l.NewCount(t.Context())
				if err == nil {
					err = count.Begin(t.Context(), alice)
				}
				if err != nil {
					t.Fatal(err)
				}
				count.Thread(alice, c.counted)
				time.AfterFunc(100*time.Millisecond, func() { l.Wrote(alice, c.after) })
				wrong, err := count.Correct(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if wrong != c.wrong {
					t.Errorf("%d counts were wrong, want %d", wrong, c.wrong)
				}
				time.Sleep(time.Second) // the clock of the test: until all of it has happened
				l.Flush(t.Context())
				used, err := s.Used(t.Context(), "acme",
					[]string{"usage/bytes/added/user/alice", "usage/bytes/removed/user/alice"})
				if got := used[0] - used[1]; err != nil || got != c.want {
					t.Errorf("%d bytes are counted, want %d: %v", got, c.want, err)
				}
			})
		})
	}
}

// TestFlushHidesNothing: gathered amounts count for readers while they are written.
func TestFlushHidesNothing(t *testing.T) {
	t.Parallel()
	l := limiter(t, memstore.New(), func(c *quota.Config) { c.PerUser.Threads = 1 })
	var flushes sync.WaitGroup
	defer flushes.Wait()
	for n := range 2000 {
		stored, err := l.Admit(t.Context(), alice, true)
		if err != nil {
			t.Fatalf("after %d threads that were made and deleted: %v", n, err)
		}
		stored(true)
		l.Deleted(alice, 0)
		flushes.Go(func() { l.Flush(context.WithoutCancel(t.Context())) })
	}
}

// foul is a ledger that panics for a time.
type foul struct {
	store.Ledger
	panics atomic.Bool
}

func (f *foul) Reserve(ctx context.Context, r *store.Reservation) error {
	if f.panics.Load() {
		panic("nobody has foreseen this")
	}
	return f.Ledger.Reserve(ctx, r)
}

func (f *foul) Settle(ctx context.Context, tenant, id string, actual map[string]int64) error {
	if f.panics.Load() {
		panic("nobody has foreseen this")
	}
	return f.Ledger.Settle(ctx, tenant, id, actual)
}

// TestRunSurvivesAPanic: a mistake in the ledger does not end the process, and nothing that
// was gathered is forgotten.
func TestRunSurvivesAPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &foul{Ledger: memstore.New()}
		l := limiter(t, f, func(c *quota.Config) { c.PerUser.Threads = 10 })
		stored, err := l.Admit(t.Context(), alice, true)
		if err != nil {
			t.Fatal(err)
		}
		go l.Run(t.Context())
		f.panics.Store(true)
		stored(false)
		l.Wrote(alice, 7)
		l.Wrote(eve, 8)
		time.Sleep(3 * time.Second) // the clock of the test
		f.panics.Store(false)
		time.Sleep(3 * time.Second)
		for who, want := range map[holdfast.Principal][]int64{alice: {0, 7}, eve: {0, 8}} {
			used, err := f.Used(t.Context(), who.Tenant,
				[]string{"usage/threads/added/tenant", "usage/bytes/added/tenant"})
			if err != nil || !slices.Equal(used, want) {
				t.Errorf("counted for %s are %v, want %v: %v", who.Tenant, used, want, err)
			}
		}
	})
}

// slow is a ledger that reserves when the test lets it.
type slow struct {
	store.Ledger
	goOn chan struct{}
}

func (s *slow) Reserve(ctx context.Context, r *store.Reservation) error {
	<-s.goOn
	return s.Ledger.Reserve(ctx, r)
}

// TestFlushWaits: when Flush returns, what was gathered before is in the ledger, also if
// another call of it was writing that.
func TestFlushWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{memstore.New(), make(chan struct{})}
		l := limiter(t, s, func(c *quota.Config) { c.PerUser.Bytes = 1 << 30 })
		l.Wrote(alice, 7)
		var flushed atomic.Int64
		for range 2 {
			go func() {
				l.Flush(t.Context())
				flushed.Add(1)
			}()
			synctest.Wait()
		}
		if flushed.Load() != 0 {
			t.Error("nothing is written, and Flush has returned")
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		l.Flush(canceled)
		close(s.goOn)
		synctest.Wait()
		used, err := s.Used(t.Context(), alice.Tenant, []string{"usage/bytes/added/tenant"})
		if err != nil || flushed.Load() != 2 || used[0] != 7 {
			t.Errorf("%d calls have returned, %d bytes are counted: %v", flushed.Load(), used[0], err)
		}
	})
}

// TestSet: limits can be replaced while runs go on, which are counted as before. Accounts in
// the store are kept from the first limit for them on.
func TestSet(t *testing.T) {
	t.Parallel()
	ledger := memstore.New()
	l := limiter(t, ledger, func(c *quota.Config) { c.PerUser.Runs = 1 })
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		l.Run(ctx)
	}()
	if err := l.TakeRun(alice); err != nil {
		t.Fatal(err)
	}
	if scopeOf(l.TakeRun(alice)) != quota.ScopeUser {
		t.Error("a second run is begun")
	}
	l.Set(quota.Limits{Pair: quota.Pair{PerUser: quota.Bounds{Runs: 2}}})
	if err := l.TakeRun(alice); err != nil || scopeOf(l.TakeRun(alice)) != quota.ScopeUser {
		t.Errorf("the new limit is not 2: %v", err)
	}
	if l.Counts() {
		t.Error("threads are counted although nothing bounds them")
	}
	l.Set(quota.Limits{Tenants: map[string]quota.Pair{"acme": {PerUser: quota.Bounds{Threads: 1}}}})
	stored, err := l.Admit(t.Context(), alice, true)
	if err != nil {
		t.Fatal(err)
	}
	stored(true)
	if _, err := l.Admit(t.Context(), alice, true); scopeOf(err) != quota.ScopeUser {
		t.Errorf("a second thread: %v", err)
	}
	l.Set(quota.Limits{})
	if _, err := l.Admit(t.Context(), alice, true); err != nil || !l.Counts() {
		t.Errorf("without limits a thread is refused, or is not counted: %v", err)
	}
	cancel()
	<-ran
}

// asking is a ledger that says when it is asked.
type asking struct {
	store.Ledger
	asked func()
}

func (a asking) Used(ctx context.Context, tenant string, accounts []string) ([]int64, error) {
	a.asked()
	return a.Ledger.Used(ctx, tenant, accounts)
}

// TestIDsInOrder: only a new thread has an id made, and before anything is waited for, so that the order of
// the ids is that of the requests.
func TestIDsInOrder(t *testing.T) {
	t.Parallel()
	made, before := 0, 0
	l := limiter(t, asking{memstore.New(), func() { before = made }}, func(c *quota.Config) {
		c.PerUser.Threads = 10
		c.NewID = func(string) string {
			made++
			return fmt.Sprint(made)
		}
	})
	for _, c := range []struct {
		newThread bool
		want      int
	}{{false, 0}, {true, 1}, {false, 1}, {true, 2}} {
		if _, err := l.Admit(t.Context(), alice, c.newThread); err != nil {
			t.Fatal(err)
		}
		if before != c.want || made != c.want {
			t.Errorf("a new thread: %t; %d ids when the ledger is asked, %d after it, want %d", c.newThread, before,
				made, c.want)
		}
	}
}
