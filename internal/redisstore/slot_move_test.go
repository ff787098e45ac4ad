package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// TestSlotMoves: while the slot of a thread is on its way to another node of the cluster,
// everything of the thread is found, wherever it is by now. A commit is written whole, or it is
// refused and leaves no trace; it is written when it is tried again.
func TestSlotMoves(t *testing.T) {
	t.Parallel()
	nodes, replicas := redistest.StartClusterOf(t, 3)
	url := "redis+cluster://" + nodes[0].Addr + "?addr=" + nodes[1].Addr
	t.Run("machine", func(t *testing.T) {
		testSlotMoves(t, nodes, func() *Store { return openAt(t, url, "machine:") })
	})
	t.Run("failover", func(t *testing.T) {
		testSlotMoves(t, nodes, func() *Store { return openFailover(t, url, "failover:") })
	})
	t.Run("shards", func(t *testing.T) {
		testShards(t, nodes, func() *Store { return openAt(t, url, "shards:") })
	})
	t.Run("no shards", func(t *testing.T) {
		testNoShards(t, nodes, func() *Store { return openAt(t, url, "none:") })
	})
	t.Run("shards with other primaries", func(t *testing.T) { // which come last: nodes are no primaries any more
		testShardFailsOver(t, nodes, replicas, func() *Store { return openAt(t, url, "others:") })
	})
}

// moving is a thread whose slot moves, with two stores: one that has written it, and one that
// knows nothing of it.
type moving struct {
	*testing.T
	owner, other *Store
	key          store.ThreadKey
	records      int
	refused      *store.Commit
}

func testSlotMoves(t *testing.T, nodes []*redistest.Server, open func() *Store) {
	ctx := t.Context()
	m := &moving{T: t, owner: open(), other: open(), key: aThread("a")}
	k, tag := m.owner.keys, tag(m.key)
	m.step(nil)
	m.step(nil)
	m.step(step("1")) // by now, the stream has entries
	if err := m.owner.Post(ctx, m.key, store.InboxItem{ID: "i"}); err != nil {
		t.Fatal(err)
	}
	move := beginMove(t, m.owner, m.key, nodes)
	m.wantAll("before the first key")
	m.step(nil)
	m.wantRefused(step("2")) // which clears a hash and puts into it, as the script could not do

	move.Keys(t, k.thread(tag))
	m.wantAll("without its head")
	m.wantRefused(nil)
	m.wantRefused(step("3"))
	move.Rest(t)
	m.wantAll("with all keys elsewhere")
	m.again()
	m.step(nil)
	m.step(step("4"))
	if err := m.owner.Post(ctx, m.key, store.InboxItem{ID: "j"}); err != nil {
		t.Error(err)
	}
	m.wantAll("after commits there")
	move.End(t)
	m.wantAll("at the end")
	m.step(step("5"))
	m.wantAll("after a commit at the end")
	if owned, err := m.other.Owned(ctx); err != nil || len(owned) != 1 || owned[0].Process != "p" {
		t.Errorf("the owner is found as %v, %v", owned, err)
	}
}

// step is what a run commits between two iterations: the marks of the last one go, and those
// of the next come.
func step(id string) func(*store.Commit) {
	return func(c *store.Commit) {
		c.Process, c.State = "p", []byte(id)
		c.Messages = []store.Message{{ID: "m" + id, Data: []byte("text")}}
		c.Clear = []store.Kind{store.KindIntent}
		c.Put = []store.Value{{Kind: store.KindIntent, ID: "i" + id, Data: []byte("intent")}}
	}
}

// step makes a commit that must be written, which is tried again as a run does.
func (m *moving) step(change func(*store.Commit)) {
	m.Helper()
	redistest.Await(m, func() error { return tryAdvance(m.Context(), m.owner, m.key, change) })
	m.records++
}

// wantRefused makes a commit that cannot be written now.
func (m *moving) wantRefused(change func(*store.Commit)) {
	m.Helper()
	err := tryAdvance(m.Context(), m.owner, m.key, func(c *store.Commit) {
		if change != nil {
			change(c)
		}
		m.refused = c
	})
	if !errors.Is(err, store.ErrRefused) {
		m.Errorf("while only some keys are there: %v, want ErrRefused", err)
	}
	m.wantAll("after a commit that was refused")
}

// again makes the commit again that was refused.
func (m *moving) again() {
	m.Helper()
	if err := m.owner.Commit(m.Context(), m.refused); err != nil {
		m.Fatal(err)
	}
	m.records++
}

// wantAll reads everything with a store that has read it before, and with one that has not.
func (m *moving) wantAll(when string) {
	m.Helper()
	ctx := context.Background()
	m.other.replicas.mu.Lock()
	m.other.replicas.known = nil
	m.other.replicas.mu.Unlock()
	for _, s := range []*Store{m.owner, m.other} {
		h, err := s.Head(ctx, m.key)
		if err != nil || h.Next != uint64(m.records)+1 {
			m.Errorf("%s: the head is %+v, %v; want %d records", when, h, err, m.records)
		}
		records, err := s.Records(ctx, m.key, store.Cursor{}, 100)
		if err != nil || len(records) != m.records {
			m.Errorf("%s: %d records, %v; want %d", when, len(records), err, m.records)
		}
		messages, err := s.Messages(ctx, m.key)
		if err != nil || len(messages) == 0 {
			m.Errorf("%s: %d messages, %v", when, len(messages), err)
		}
		intents, err := s.Values(ctx, m.key, store.KindIntent, "", 0)
		if want := fmt.Sprint("i", string(h.State)); err != nil || len(intents) != 1 || intents[0].ID != want {
			m.Errorf("%s: the intents are %v, %v; want %s", when, intents, err, want)
		}
		inbox, err := s.Inbox(ctx, m.key)
		if err != nil || len(inbox) == 0 {
			m.Errorf("%s: the inbox has %d items, %v", when, len(inbox), err)
		}
		if m.Failed() {
			m.FailNow()
		}
	}
}

// checkpoint makes a commit list a checkpoint.
func checkpoint(c *store.Commit) {
	c.Put = []store.Value{{Kind: store.KindCheckpoint, ID: c.ID}}
	c.Clear = []store.Kind{store.KindIntent, store.KindPending}
	c.Keep = map[store.Kind]int{store.KindCheckpoint: 100}
}

// TestHistoryMovesLast: while the head of a thread and its log are at another node already, and
// its checkpoints are not, or the other way round, nothing is written that needs both.
func TestHistoryMovesLast(t *testing.T) {
	t.Parallel()
	nodes, _ := redistest.StartClusterOf(t, 3)
	const first = 2 * maxRecent // the next one moves those before it
	for name, last := range map[string]bool{"goes first": false, "goes last": true} {
		t.Run(name, func(t *testing.T) {
			s := openAt(t, "redis+cluster://"+nodes[0].Addr+"?addr="+nodes[1].Addr, "hf:")
			key := aThread(name)
			for range first {
				advance(t, s, key, checkpoint)
			}
			tag := tag(key)
			move := beginMove(t, s, key, nodes)
			moved := []string{s.keys.history(tag), s.keys.values(tag, store.KindCheckpoint)}
			if last {
				moved = []string{s.keys.thread(tag), s.keys.log(tag)}
			}
			move.Keys(t, moved...)
			if err := tryAdvance(t.Context(), s, key, checkpoint); !errors.Is(err, store.ErrRefused) {
				t.Errorf("between two nodes: %v, want ErrRefused", err)
			}
			move.Rest(t)
			if err := tryAdvance(t.Context(), s, key, checkpoint); err != nil {
				t.Errorf("with all keys elsewhere: %v", err)
			}
			move.End(t)
			advance(t, s, key, checkpoint)
			const want = first + 2
			if list, err := s.Values(t.Context(), key, store.KindCheckpoint, "", 0); err != nil || len(list) != want {
				t.Errorf("%d checkpoints, %v, want %d", len(list), err, want)
			}
		})
	}
}

// beginMove begins to move the slot of a thread to the next node.
func beginMove(t *testing.T, s *Store, key store.ThreadKey, nodes []*redistest.Server) *redistest.Move {
	t.Helper()
	thread := s.keys.thread(tag(key))
	slot, err := s.client.ClusterKeySlot(t.Context(), thread).Result()
	if err != nil {
		t.Fatal(err)
	}
	owner, err := s.replicas.nodeOf(t.Context(), thread)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(nodes, func(n *redistest.Server) bool {
		return n.Addr == owner.(*redis.Client).Options().Addr
	})
	return redistest.BeginMove(t, slot, nodes[at], nodes[(at+1)%len(nodes)], nodes)
}
