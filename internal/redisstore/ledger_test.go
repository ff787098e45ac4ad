package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

func reservation(id string, entries ...store.Entry) *store.Reservation {
	return &store.Reservation{Tenant: "acme", ID: id, Entries: entries, Now: time.Now()}
}

func reserve(t *testing.T, s *Store, id string, entries ...store.Entry) {
	t.Helper()
	if err := s.Reserve(t.Context(), reservation(id, entries...)); err != nil {
		t.Fatal(err)
	}
}

// wantTTL checks that Redis removes the key at about the given time; the zero time is
// never.
func wantTTL(t *testing.T, s *Store, key string, expires time.Time) {
	t.Helper()
	ttl, err := s.client.PTTL(t.Context(), key).Result()
	want := time.Until(expires)
	if expires.IsZero() {
		want = -1
	}
	if off := ttl - want; err != nil || off.Abs() > 10*time.Second || expires.IsZero() != (ttl < 0) {
		t.Errorf("%s goes in %s, %v, want %s", key, ttl, err, want)
	}
}

// TestLedgerKeysExpire: Redis itself removes what has expired, and nothing else.
func TestLedgerKeysExpire(t *testing.T) {
	t.Parallel()
	s := openAt(t, shared.Server(t).Database(t), "hf:")
	a, b := s.keys.account("acme", "a"), s.keys.account("acme", "b")
	minute, hour := time.Now().Add(time.Minute), time.Now().Add(time.Hour)
	reserve(t, s, "1", store.Entry{Account: "a", Amount: 1, Expires: minute},
		store.Entry{Account: "b", Amount: 1, Expires: hour})
	wantTTL(t, s, a, minute)
	wantTTL(t, s, b, hour)
	wantTTL(t, s, s.keys.reservation("acme", "1"), hour)
	reserve(t, s, "2", store.Entry{Account: "a", Amount: 1, Expires: hour}, store.Entry{Account: "b", Amount: 1})
	wantTTL(t, s, a, hour)
	wantTTL(t, s, b, time.Time{})
	wantTTL(t, s, s.keys.reservation("acme", "2"), time.Time{})
	reserve(t, s, "3", store.Entry{Account: "a", Amount: 1, Expires: minute},
		store.Entry{Account: "b", Amount: 1, Expires: minute})
	if err := s.Settle(t.Context(), "acme", "2", map[string]int64{"a": 5}); err != nil {
		t.Fatal(err)
	}
	wantTTL(t, s, a, hour)
	wantTTL(t, s, b, time.Time{})
	if s.client.Exists(t.Context(), s.keys.reservation("acme", "2")).Val() != 0 {
		t.Error("a settled reservation is still there")
	}
	keys, err := s.client.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if !strings.HasPrefix(key, "hf:ledger:{acme/}:") {
			t.Errorf("unexpected key %s", key)
		}
	}
}

// TestExpiredByRedis: time passes for Redis although nobody makes a reservation.
func TestExpiredByRedis(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	soon := time.Now().Add(100 * time.Millisecond)
	reserve(t, s, "1", store.Entry{Account: "a", Amount: 1, Expires: soon}, store.Entry{Account: "b", Amount: 1})
	reserve(t, s, "2", store.Entry{Account: "a", Amount: 1, Expires: soon})
	wait.For(t, func() error {
		used, err := s.Used(t.Context(), "acme", []string{"a", "b"})
		if err == nil && used[0] == 0 && used[1] == 1 {
			return nil
		}
		return fmt.Errorf("the account has not expired: %d, %w", used, err)
	})
	for _, id := range []string{"1", "2"} {
		if err := s.Settle(t.Context(), "acme", id, map[string]int64{"a": 7, "b": 7}); err != nil {
			t.Fatal(err)
		}
	}
	used, err := s.Used(t.Context(), "acme", []string{"a", "b"})
	if err != nil || used[0] != 0 || used[1] != 7 {
		t.Errorf("after it was settled: %d, %v, want 0 and 7", used, err)
	}
}

// TestLimitAcrossProcesses: two servers on one Redis never exceed a limit together.
func TestLimitAcrossProcesses(t *testing.T) {
	t.Parallel()
	const limit, each = 50, 40
	here := openShared(t)
	there := openAt(t, shared.Server(t).URL(), here.keys.prefix)
	var made atomic.Int64
	var wg sync.WaitGroup
	for process, s := range []*Store{here, there} {
		for n := range each {
			wg.Go(func() {
				err := s.Reserve(t.Context(),
					reservation(fmt.Sprint(process, n), store.Entry{Account: "a", Amount: 1, Limit: limit}))
				var refused *store.LimitError
				if err == nil {
					made.Add(1)
				} else if !errors.As(err, &refused) {
					t.Errorf("Reserve: %v", err)
				}
			})
		}
	}
	wg.Wait()
	if made.Load() != limit {
		t.Errorf("%d reservations were made, want %d", made.Load(), limit)
	}
}

// TestLedgerForgottenScripts: reservations survive that Redis forgets its scripts.
func TestLedgerForgottenScripts(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	for n := range 2 {
		if err := s.client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		reserve(t, s, fmt.Sprint(n), store.Entry{Account: "a", Amount: 2})
		if err := s.Settle(t.Context(), "acme", fmt.Sprint(n), map[string]int64{"a": 1}); err != nil {
			t.Error(err)
		}
		if used, err := s.Used(t.Context(), "acme", []string{"a"}); err != nil || used[0] != int64(n+1) {
			t.Errorf("%d, %v was used, want %d", used, err, n+1)
		}
	}
}

// TestSettleRepeats: a request to settle is the same each time.
func TestSettleRepeats(t *testing.T) {
	t.Parallel()
	s := openAt(t, "redis://"+miniredis.RunT(t).Addr(), "hf:")
	sent := &settles{}
	s.client.(*redis.Client).AddHook(sent)
	actual := map[string]int64{}
	for i := range 20 {
		actual[fmt.Sprintf("account%d", i)] = int64(i)
	}
	for range 5 {
		if err := s.Settle(t.Context(), "acme", "1", actual); err != nil {
			t.Fatal(err)
		}
	}
	last := sent.args[len(sent.args)-1]
	for _, args := range sent.args[1:] { // the first one may bring the script
		if args != last {
			t.Fatalf("two requests:\n%s\n%s", args, last)
		}
	}
}

// settles keeps what commands say.
type settles struct{ args []string }

func (h *settles) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *settles) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			h.args = append(h.args, fmt.Sprint(cmd.Args()))
		}
		return next(ctx, cmd)
	}
}

func (h *settles) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
