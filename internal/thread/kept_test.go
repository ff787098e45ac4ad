package thread

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
)

// keptThread is a thread with a history of n messages, each of so many bytes.
func keptThread(id string, n, bytes int) (*Thread, *History) {
	h, raw := NewHistory(), make([]byte, bytes)
	for i := range n {
		h.Add(agui.Message{ID: fmt.Sprint("m", i), Role: "user"}, raw)
	}
	t := &Thread{Key: store.ThreadKey{Thread: id}, Head: &store.Head{ETag: "c1"}, State: New()}
	t.State.Leaf = h.Path[n-1].ID
	return t, h
}

// kept returns what is kept of a thread.
func kept(k *Kept, t *Thread) *History { return k.History(t.Key, t.Head.ETag, t.State.Leaf) }

// TestKept: a history is kept for the head that it belongs to, and commits that change no
// messages move it along.
func TestKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := NewKept()
		a, h := keptThread("a", longHistory, 1)
		put := func() { k.Put(a.Key, "c1", a.State.Leaf, h) }
		commit := func(c store.Commit, id, on string) {
			c.Key, c.ID, c.Expect.ETag = a.Key, id, on
			k.Committed(&c)
		}
		want := func(etag string, there bool) {
			t.Helper()
			a.Head.ETag = etag
			if got := kept(k, a); (got != nil) != there || got != nil && len(got.Path) != longHistory {
				t.Errorf("%s: the history is there: %v", etag, got != nil)
			}
		}
		put()
		want("c1", true)
		commit(store.Commit{Trim: 1}, "c2", "c1")
		want("c2", true)
		want("c1", false)

		put()
		commit(store.Commit{Messages: []store.Message{{ID: "new"}}}, "c2", "c1")
		want("c2", false)
		put()
		commit(store.Commit{Forget: []string{"m0"}}, "c2", "c1")
		want("c2", false)
		put()
		commit(store.Commit{}, "c3", "c2") // somebody else has made c2
		want("c3", false)

		put()
		time.Sleep(keptIdle - time.Second)
		want("c1", true)
		time.Sleep(keptIdle)
		want("c1", true)
		time.Sleep(2 * keptIdle)
		want("c1", false)
		if k.bytes != 0 || k.expiry != nil {
			t.Errorf("%d bytes are left", k.bytes)
		}
	})
}

// TestKeptIsClosed: a process that stops leaves no timer, and nothing is kept for it any more.
func TestKeptIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := NewKept()
		a, h := keptThread("a", longHistory, 1)
		for range 2 {
			k.Put(a.Key, "c1", a.State.Leaf, h)
			k.Close()
			if kept(k, a) != nil || k.bytes != 0 || k.expiry != nil {
				t.Errorf("%d bytes are left", k.bytes)
			}
		}
	})
}

// TestKeptGrows: those who get a history add to it without seeing what the others add.
func TestKeptGrows(t *testing.T) {
	k := NewKept()
	a, h := keptThread("a", longHistory, 1)
	k.Put(a.Key, "c1", a.State.Leaf, h)
	one, two := kept(k, a), kept(k, a)
	one.Add(agui.Message{ID: "one"}, nil)
	two.Add(agui.Message{ID: "two"}, nil)
	for id, h := range map[string]*History{"one": one, "two": two} {
		if last := h.Path[h.Last()].ID; last != id || h.Index[id] != longHistory || len(h.Index) != longHistory+1 {
			t.Errorf("%s: the last message is %s, of %d", id, last, len(h.Index))
		}
	}
}

// TestKeptIsBounded: what was not used for the longest time makes room, and what is too large,
// short, or not known whole is not kept.
func TestKeptIsBounded(t *testing.T) {
	k := NewKept()
	for i := range 4 {
		a, h := keptThread(fmt.Sprint(i), longHistory, keptTotal/longHistory/8)
		k.Put(a.Key, "c1", a.State.Leaf, h)
		if i > 0 {
			first, _ := keptThread("0", 1, 1)
			first.State.Leaf = a.State.Leaf
			if kept(k, first) == nil {
				t.Errorf("what is used all the time is gone after %d more", i)
			}
		}
	}
	if len(k.threads) != 3 || k.bytes > keptTotal {
		t.Errorf("%d histories are kept, of %d bytes", len(k.threads), k.bytes)
	}
	for what, change := range map[string]func(*History){
		"large":    func(h *History) { h.Raw[0] = make([]byte, keptTotal) },
		"short":    func(h *History) { h.Path = h.Path[1:] },
		"branched": func(h *History) { h.Branched = true },
	} {
		a, h := keptThread(what, longHistory, 1)
		change(h)
		if k.Put(a.Key, "c1", a.State.Leaf, h); kept(k, a) != nil {
			t.Errorf("one is kept that is %s", what)
		}
	}
}
