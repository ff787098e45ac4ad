package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/frame"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/redisstore/connection"
	"github.com/holdfast-agents/holdfast/internal/testkit"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// pair is a thread in Redis and in the reference, to which the same is done.
type pair struct {
	*testing.T
	redis  *Store
	ref    *memstore.Store
	key    store.ThreadKey
	random *rand.Rand
	head   store.Head
	ends   []uint64 // the last records of commits
	n      int
}

// id returns one of a few ids, so that many commits have the same ones.
func (p *pair) id() string { return fmt.Sprint("v", p.random.IntN(6)) }

// data returns data of any size, sometimes too large for the thread's hash.
func (p *pair) data() []byte {
	size := []int{0, 10, 120, 700, 5000, 17 << 10}[min(p.random.IntN(12), 5)]
	if size > 1000 && p.random.IntN(4) > 0 {
		size = 120
	}
	data := fmt.Appendf(nil, `{"n":%d,"text":"`, p.random.IntN(1000))
	for len(data) < size {
		data = append(data, byte(p.random.IntN(256)))
	}
	return data
}

// values adds what is done to kinds.
func (p *pair) values(c *store.Commit) {
	kinds := []store.Kind{store.KindIntent, store.KindPending, store.KindCheckpoint, store.KindRun, "other"}
	for range p.random.IntN(3) {
		v := store.Value{Kind: kinds[p.random.IntN(len(kinds))], ID: p.id(), Data: p.data()}
		if !slices.ContainsFunc(c.Put, func(o store.Value) bool { return o.Kind == v.Kind && o.ID == v.ID }) {
			c.Put = append(c.Put, v)
		}
	}
	for _, k := range kinds {
		if p.random.IntN(12) == 0 {
			c.Clear = append(c.Clear, k)
		}
		if p.random.IntN(12) == 0 {
			c.Delete = append(c.Delete, store.ValueID{Kind: k, ID: p.id()})
		}
		if p.random.IntN(40) == 0 {
			c.Keep = map[store.Kind]int{k: p.random.IntN(4)}
		}
	}
}

// step makes a commit: most of them as an iteration does, the others in any way.
func (p *pair) step() {
	p.n++
	c := &store.Commit{
		Key:       p.key,
		ID:        fmt.Sprint("c", p.n),
		Expect:    p.head.Position(),
		User:      "alice",
		Fence:     store.Fence{Epoch: uint64(p.n / 40), Nonce: fmt.Sprintf("%06d-nonce", p.n/40)},
		UpdatedAt: time.Unix(int64(p.n), 0).UTC(),
	}
	for range p.random.IntN(3) {
		c.Records = append(c.Records, p.data())
	}
	if p.random.IntN(3) > 0 {
		c.State = p.data()
		checkpoint := store.Value{Kind: store.KindCheckpoint, ID: fmt.Sprintf("w%08d", p.n), Data: p.data()}
		switch p.random.IntN(10) {
		case 0:
			p.values(c)
		case 1, 2, 3:
			c.Put = append(c.Put, store.Value{Kind: store.KindIntent, ID: p.id(), Data: p.data()})
		case 4, 5, 6:
			c.Clear = []store.Kind{store.KindPending, store.KindIntent}
			c.Put = append(c.Put, checkpoint)
			c.Keep = map[store.Kind]int{store.KindCheckpoint: p.keep()}
		case 7:
			c.Put = append(c.Put, checkpoint)
		case 8:
			c.Put = append(c.Put, store.Value{Kind: store.KindPending, ID: p.id(), Data: p.data()})
			c.Delete = append(c.Delete, store.ValueID{Kind: store.KindIntent, ID: p.id()})
		}
	}
	if len(p.ends) > 3 && p.random.IntN(20) == 0 {
		c.Trim = p.ends[p.random.IntN(len(p.ends))]
	}
	if err := p.ref.Commit(p.Context(), c); err != nil {
		p.Fatal(err)
	}
	if err := p.redis.Commit(p.Context(), c); err != nil {
		p.Fatalf("commit %d: %v", p.n, err)
	}
	p.head = store.Head{Key: p.key, Fence: c.Fence, ETag: c.ID, Next: c.Expect.Next + uint64(len(c.Records))}
	if last := p.head.Next - 1; last > 0 && !slices.Contains(p.ends, last) {
		p.ends = append(p.ends, last)
	}
}

// keep returns how many checkpoints are kept: for a while the same number.
func (p *pair) keep() int { return []int{5, 1, 30, 17, 16, 3}[p.n/60%6] }

// compare reads both.
func (p *pair) compare() {
	p.Helper()
	ctx := p.Context()
	same := func(what string, read func(store.Store) (any, error)) {
		p.Helper()
		want, err1 := read(p.ref)
		got, err2 := read(p.redis)
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) || (err1 == nil) != (err2 == nil) ||
			errors.Is(err1, store.ErrNotFound) != errors.Is(err2, store.ErrNotFound) ||
			errors.Is(err1, store.ErrCursor) != errors.Is(err2, store.ErrCursor) {
			p.Fatalf("after commit %d, %s: %.300q, %v; want %.300q, %v", p.n, what, got, err2, want, err1)
		}
	}
	for _, k := range []store.Kind{store.KindIntent, store.KindPending, store.KindCheckpoint, store.KindRun, "other"} {
		id, limit := p.id(), p.random.IntN(4)
		if k == store.KindCheckpoint {
			id = fmt.Sprintf("w%08d", max(p.n-p.random.IntN(40), 0))
		}
		same("all of "+string(k), func(s store.Store) (any, error) { return s.Values(ctx, p.key, k, "", 0) })
		same("some of "+string(k), func(s store.Store) (any, error) { return s.Values(ctx, p.key, k, id, limit) })
		same(string(k)+" "+id, func(s store.Store) (any, error) { return s.Value(ctx, p.key, k, id) })
	}
	all, err := p.ref.Records(ctx, p.key, store.Cursor{}, 1000)
	if err != nil {
		p.Fatal(err)
	}
	same("the log", func(s store.Store) (any, error) { return s.Records(ctx, p.key, store.Cursor{}, 1000) })
	cursors := []store.Cursor{
		{Number: p.head.Next, Tag: "000000"},
		{Number: uint64(p.random.IntN(int(p.head.Next))), Tag: "000000"},
	}
	for _, r := range all[max(len(all)-5, 0):] {
		cursors = append(cursors, r.Cursor, store.Cursor{Number: r.Number, Tag: "foreign"},
			store.Cursor{Number: r.Number})
	}
	for _, c := range cursors {
		for _, limit := range []int{0, 1, 1000} {
			same(fmt.Sprintf("%d records after %v", limit, c), func(s store.Store) (any, error) {
				return s.Records(ctx, p.key, c, limit)
			})
		}
	}
}

// TestNewest: whatever is written in whatever order, what is read is what the reference has.
func TestNewest(t *testing.T) {
	t.Parallel()
	url := shared.Server(t).URL()
	for _, seed := range testkit.Sample(t, 3, 0, []uint64{0, 1, 2, 3, 4, 5}) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			p := &pair{
				T:      t,
				redis:  openAt(t, url, newPrefix()),
				ref:    memstore.New(),
				key:    aThread("t"),
				random: rand.New(rand.NewPCG(seed, 1)),
				head:   store.Head{Next: 1},
			}
			for range 360 {
				p.step()
				if p.random.IntN(4) == 0 {
					p.compare()
				}
			}
			p.compare()
		})
	}
}

// round makes the two commits of a round with a tool that has effects.
func round(t *testing.T, s *Store, key store.ThreadKey, n int) {
	t.Helper()
	advance(t, s, key, func(c *store.Commit) {
		c.State = []byte("state")
		c.Messages = []store.Message{{ID: fmt.Sprint("answer", n), Parent: fmt.Sprint("result", n-1)}}
		if n == 0 {
			c.Messages[0].Parent = ""
		}
		c.Put = []store.Value{{Kind: store.KindIntent, ID: fmt.Sprint("call", n)}}
	})
	advance(t, s, key, func(c *store.Commit) {
		c.State = []byte("state")
		c.Messages = []store.Message{{ID: fmt.Sprint("result", n), Parent: fmt.Sprint("answer", n)}}
		c.Clear = []store.Kind{store.KindPending, store.KindIntent}
		c.Put = []store.Value{{Kind: store.KindCheckpoint, ID: fmt.Sprintf("%08d", n)}}
		c.Keep = map[store.Kind]int{store.KindCheckpoint: 100}
	})
}

// total returns how many commands touch a thread. A store also tells other processes what it
// does, and looks for them, when it is time for that.
func total(counts map[string]int) (n int) {
	for name, calls := range counts {
		if !slices.ContainsFunc([]string{"publish", "pubsub", "subscribe", "ssubscribe", "ping", "client", "hello",
			"select"}, func(other string) bool { return strings.HasPrefix(name, other) }) {
			n += calls
		}
	}
	return n
}

// TestRoundCost: a round whose tool has effects is two commits of three commands each, of
// which one also writes the log of both; and every 16th one moves checkpoints, which takes at
// most six. It does not matter how long the thread is.
func TestRoundCost(t *testing.T) {
	t.Parallel()
	s := openAt(t, redistest.Start(t).URL(), "hf:")
	key := aThread("t")
	moved := 0
	for n := range 200 {
		counts := executed(t, s, func() { round(t, s, key, n) })
		switch got := total(counts) - 2; { // without the two reads of the head, which are the test's
		case n < 2: // some scripts are loaded
		case counts["zpopmin"]+counts["hdel"] > 0 && got <= 14:
			moved++
		case got-counts["zadd"] != 7: // each minute, a hint says that the thread is active
			t.Fatalf("round %d took %d commands: %v", n, got, counts)
		}
	}
	if moved != 200/maxRecent {
		t.Errorf("checkpoints were moved %d times", moved)
	}
}

// TestFollowCost: who reads after each commit of a run makes one request for each.
func TestFollowCost(t *testing.T) {
	t.Parallel()
	s := openAt(t, redistest.Start(t).URL(), "hf:")
	key := aThread("t")
	at := store.Cursor{}
	for n := range 20 {
		advance(t, s, key, nil)
		counts := executed(t, s, func() {
			records, err := s.Records(t.Context(), key, at, 100)
			if err != nil || len(records) != 1 {
				t.Fatalf("%d records, %v", len(records), err)
			}
			at = records[0].Cursor
		})
		if total(counts) != 1 || counts["hmget"] != 1 {
			t.Errorf("reading commit %d took %v", n, counts)
		}
	}
}

// between does after each pipeline of a client what the context of its call holds.
type between struct{}

// meanwhile is the key of a func() in a context, and removed of one that is called after each script instead.
type meanwhile struct{}
type removed struct{}

func (between) DialHook(next redis.DialHook) redis.DialHook { return next }

func (between) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if do, ok := ctx.Value(removed{}).(func()); ok && err == nil && strings.HasPrefix(cmd.Name(), "eval") {
			do()
		}
		return err
	}
}

func (between) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if do, ok := ctx.Value(meanwhile{}).(func()); ok {
			do()
		}
		return err
	}
}

// openBetween opens the keys of a store again, with the hook.
func openBetween(t *testing.T, s *Store) *Store {
	t.Helper()
	client, err := connection.To(shared.Server(t).URL(), "")
	if err != nil {
		t.Fatal(err)
	}
	client.AddHook(between{})
	again, err := New(t.Context(), client, Options{Prefix: s.keys.prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Close() })
	return again
}

// TestCheckpointsMoveMeanwhile: while checkpoints are read, a commit moves those of the thread's
// hash, and removes the oldest. Those that are kept before and after it are found.
func TestCheckpointsMoveMeanwhile(t *testing.T) {
	t.Parallel()
	writer := openShared(t)
	reader := openBetween(t, writer)
	const keep = 20
	id := func(n int) string { return fmt.Sprintf("%08d", n) }
	for name, read := range map[string]func(ctx context.Context, key store.ThreadKey, n int) error{
		"one": func(ctx context.Context, key store.ThreadKey, n int) error {
			_, err := reader.Value(ctx, key, store.KindCheckpoint, id(n))
			return err
		},
		"all": func(ctx context.Context, key store.ThreadKey, n int) error {
			list, err := reader.Values(ctx, key, store.KindCheckpoint, "", 0)
			if err == nil && !slices.ContainsFunc(list, func(v store.Value) bool { return v.ID == id(n) }) {
				err = fmt.Errorf("there are %d, without it", len(list))
			}
			return err
		},
		"a page": func(ctx context.Context, key store.ThreadKey, n int) error {
			list, err := reader.Values(ctx, key, store.KindCheckpoint, id(n+1), 2)
			if err == nil && (len(list) == 0 || list[0].ID != id(n)) {
				err = fmt.Errorf("there are %d, without it", len(list))
			}
			return err
		},
	} {
		key := aThread(name)
		step := func(n int) {
			advance(t, writer, key, func(c *store.Commit) {
				c.Put = []store.Value{{Kind: store.KindCheckpoint, ID: id(n)}}
				c.Keep = map[store.Kind]int{store.KindCheckpoint: keep}
			})
		}
		step(0)
		for n := range 4 * maxRecent {
			ctx := context.WithValue(t.Context(), meanwhile{}, sync.OnceFunc(func() { step(n + 1) }))
			kept := max(n-keep+2, 0) // the oldest one then
			if err := read(ctx, key, kept); err != nil {
				t.Errorf("%s, checkpoint %d of %d: %v", name, kept, n, err)
			}
		}
	}
}

// TestLogDamaged: an entry that may be nowhere else is not taken for one that the log has.
func TestLogDamaged(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	key := aThread("t")
	advance(t, s, key, nil)
	thread := s.keys.thread(tag(key))
	whole := s.client.HGet(t.Context(), thread, "e").Val()
	if err := s.client.HSet(t.Context(), thread, "e", "v"+whole[1:]).Err(); err != nil {
		t.Fatal(err)
	}
	if err := tryAdvance(t.Context(), s, key, nil); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("the next commit: %v", err)
	}
	if err := s.client.HSet(t.Context(), thread, "e", whole).Err(); err != nil {
		t.Fatal(err)
	}
	advance(t, s, key, nil)
	if records, err := s.Records(t.Context(), key, store.Cursor{}, 10); err != nil || len(records) != 2 {
		t.Errorf("%d records, %v", len(records), err)
	}
}

// FuzzFields: whatever the fields of a thread hold, reading them ends in values or an error.
func FuzzFields(f *testing.F) {
	codec, err := frame.New()
	if err != nil {
		f.Fatal(err)
	}
	s := &values{codec: codec, earlier: codec.Earlier(), written: &written{}}
	c := &store.Commit{
		Fence:   store.Fence{Epoch: 1, Nonce: "abcdefgh"},
		Expect:  store.Position{Next: 12},
		Records: [][]byte{[]byte("one"), []byte("two")},
	}
	whole := "u\x0013:" + string(s.encodeEntry(c))
	if n, err := s.decodeNewest(store.ThreadKey{}, whole); err != nil || len(n.records) != 2 {
		f.Fatal(n, err)
	}
	f.Add("2:100:b", "\x01a\x00", "\x01a\x02ab", "u\x0012:\x00")
	f.Add("1:0:", "\x7f", "\xff\xff", "s")
	f.Add("1:0:a", "\x01a"+string(codec.Encode(nil, "", nil)), "\x01a\x05"+string(codec.Encode(nil, "", nil)), whole)
	f.Fuzz(func(t *testing.T, x, slot, intents, newest string) {
		fields := make([]any, 2+maxRecent)
		fields[1] = x
		for n := 2; n < len(fields); n++ {
			fields[n] = slot
		}
		if r, err := parseRecent(fields); err == nil && (len(r.framed) > maxRecent || r.hidden > r.listed) {
			t.Errorf("%q: %+v", x, r)
		}
		found, err := intentsIn(intents)
		for id, framed := range found {
			if err == nil && !frame.Summed([]byte(framed)) {
				t.Errorf("%q: %q is %q", intents, id, framed)
			}
		}
		n, err := s.decodeNewest(store.ThreadKey{}, newest)
		if err != nil || newest == "" {
			return
		}
		if flag := newest[0]; len(n.records) == 0 || flag != 'u' && flag != 's' {
			t.Errorf("%q has %d records", newest, len(n.records))
		}
		if rest, ok := n.after(n.records[0].Cursor, 1000); !ok || len(rest) != len(n.records)-1 {
			t.Errorf("%q: after the first there are %d records, %v", newest, len(rest), ok)
		}
	})
}
