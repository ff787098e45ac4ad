package storetest

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// notifyTests test [store.Notifier].
func notifyTests() map[string]func(*testing.T, store.Store) {
	return map[string]func(*testing.T, store.Store){
		"a commit with records wakes":      testWatchRecords,
		"a post is announced":              testOnPost,
		"no record is missed by a watcher": testWatchAll,
		"many watchers, some stopped":      testWatchMany,
	}
}

// wantWake waits for a wake-up.
func wantWake(t *testing.T, wake <-chan struct{}) {
	t.Helper()
	select {
	case <-wake:
	case <-time.After(10 * time.Second):
		t.Fatal("no wake-up came")
	}
}

// testWatchRecords begins with a thread that does not exist yet.
func testWatchRecords(t *testing.T, s store.Store) {
	wake, stop := s.Watch(key("t"))
	defer stop()
	th := create(t, s, key("t"), func(c *store.Commit) { c.Records = [][]byte{[]byte("r")} })
	wantWake(t, wake)
	for range 5 {
		th.commit(func(c *store.Commit) { c.Records = [][]byte{[]byte("r")} })
		wantWake(t, wake)
	}
}

func testOnPost(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), nil)
	other := create(t, s, key("other"), nil)
	posted := make(chan store.ThreadKey, 100)
	stop := s.OnPost(func(k store.ThreadKey) { posted <- k })
	for i, th := range []*thread{th, other, th} {
		th.post(strconv.Itoa(i), "")
		wantPost(t, posted, th.key)
	}
	stop()
	stop() // a second time does no harm
}

// wantPost waits for the announcement of a post to the thread, or for the one that says
// that some may have been missed.
func wantPost(t *testing.T, posted <-chan store.ThreadKey, key store.ThreadKey) {
	t.Helper()
	for timeout := time.After(10 * time.Second); ; {
		select {
		case k := <-posted:
			if k == key || k == (store.ThreadKey{}) {
				return
			}
		case <-timeout:
			t.Fatalf("the post to %s was not announced", key)
		}
	}
}

// testWatchAll: a reader that reads after each wake-up, however slowly, sees everything.
func testWatchAll(t *testing.T, s store.Store) {
	const records = 200
	th := create(t, s, key("t"), nil)
	wake, stop := s.Watch(th.key)
	defer stop()
	var writer sync.WaitGroup
	writer.Go(func() {
		for range records {
			c := th.next()
			c.Records = [][]byte{[]byte("r")}
			if err := s.Commit(t.Context(), c); err != nil {
				t.Errorf("Commit: %v", err)
				return
			}
			th.head = headAfter(th.head, c)
		}
	})
	defer writer.Wait()
	var last store.Cursor
	for last.Number < records {
		wantWake(t, wake)
		for _, r := range must(s.Records(t.Context(), th.key, last, records))(t) {
			last = r.Cursor
		}
	}
}

func testWatchMany(t *testing.T, s store.Store) {
	th := create(t, s, key("t"), nil)
	var wakes []<-chan struct{}
	for i := range 20 {
		wake, stop := s.Watch(th.key)
		if i%2 == 0 {
			stop()
			stop() // a second time does no harm
			continue
		}
		defer stop()
		wakes = append(wakes, wake)
	}
	th.commit(func(c *store.Commit) { c.Records = [][]byte{[]byte("r")} })
	for _, wake := range wakes {
		wantWake(t, wake)
	}
}
