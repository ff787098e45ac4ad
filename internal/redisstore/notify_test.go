package redisstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/redisstore/connection"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/store"
)

func wantWake(t *testing.T, wake <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-wake:
	case <-time.After(time.Minute):
		t.Fatalf("%s woke nobody", what)
	}
}

// drain removes a wake-up that may be waiting.
func drain(wake <-chan struct{}) {
	select {
	case <-wake:
	default:
	}
}

// TestWatchAcrossProcesses: what one store commits wakes the watchers of another, even
// after their connection was cut.
func TestWatchAcrossProcesses(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	here, there := openAt(t, url, "hf:"), openAt(t, url, "hf:")
	key := aThread("t")
	advance(t, here, key, nil)
	records, stop := there.Watch(key)
	defer stop()
	inbox := make(chan struct{}, 100)
	defer there.OnPost(func(store.ThreadKey) { inbox <- struct{}{} })()
	wantWake(t, records, "the subscription") // from now on nothing is missed
	for n := range 3 {
		drain(records)
		advance(t, here, key, nil)
		wantWake(t, records, "a commit")
		drain(inbox)
		if err := here.Post(t.Context(), key, store.InboxItem{ID: fmt.Sprint(n)}); err != nil {
			t.Fatal(err)
		}
		wantWake(t, inbox, "a post")
		drain(records) // not later: the new subscription is quick
		if err := here.client.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil {
			t.Fatal(err)
		}
		wantWake(t, records, "the new subscription")
	}
}

// TestWatchBeforeTheThread: a watcher may come before another process makes the thread.
func TestWatchBeforeTheThread(t *testing.T) {
	t.Parallel()
	here := openShared(t)
	there := openAt(t, shared.Server(t).URL(), here.keys.prefix)
	wake, stop := there.Watch(aThread("t"))
	defer stop()
	advance(t, here, aThread("t"), nil)
	wantWake(t, wake, "the first commit")
}

// TestQuietWithoutWatchers: a commit is published only while somebody in another process
// watches.
func TestQuietWithoutWatchers(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	s, other := openAt(t, url, "hf:"), openAt(t, url, "hf:")
	advance(t, s, aThread("t"), nil)
	if n := executed(t, s, func() { advance(t, s, aThread("t"), nil) })["publish"]; n != 0 {
		t.Errorf("%d commits were published for nobody", n)
	}
	wake, stop := other.Watch(aThread("t"))
	defer stop()
	for !s.client.HExists(t.Context(), s.keys.thread(tag(aThread("t"))), "w").Val() {
		// There are two wake-ups: one for the subscription, one when the thread was asked.
		wantWake(t, wake, "the subscription")
	}
	if n := executed(t, s, func() { advance(t, s, aThread("t"), nil) })["publish"]; n != 1 {
		t.Errorf("a commit was published %d times, want once", n)
	}
}

// TestDatabasesApart: Pub/Sub knows no databases, but stores in two databases of one Redis
// hear nothing of each other, although all names are the same.
func TestDatabasesApart(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	listener, err := connection.To(url, "")
	if err != nil {
		t.Fatal(err)
	}
	all := listener.PSubscribe(t.Context(), "hf:*")
	t.Cleanup(func() { _ = errors.Join(all.Close(), listener.Close()) })
	if _, err := all.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	said := all.Channel()
	channels := map[string]string{} // and which database uses it
	var heard [2]chan string
	for i, database := range []string{"/1", "/3"} {
		here, there := openAt(t, url+database, "hf:"), openAt(t, url+database, "hf:")
		advance(t, here, aThread("t"), nil)
		_, stop := there.Watch(aThread("t"))
		t.Cleanup(stop)
		heard[i] = make(chan string, 100)
		t.Cleanup(there.OnPost(func(k store.ThreadKey) {
			if k != (store.ThreadKey{}) { // not the subscription's
				heard[i] <- "a post"
			}
		}))
		gone := make(chan struct{})
		t.Cleanup(there.OnDeparture("watcher", func(d store.Departure) {
			heard[i] <- "the end of " + d.Process
			if d.Process == "p"+database {
				close(gone)
			}
		}))
		wait.Until(t, "the thread to publish", func() bool {
			return here.client.HExists(t.Context(), here.keys.thread(tag(aThread("t"))), "w").Val()
		})
		advance(t, here, aThread("t"), nil)
		if err := here.Post(t.Context(), aThread("t"), store.InboxItem{ID: "p"}); err != nil {
			t.Fatal(err)
		}
		process := "p" + database
		for _, err := range []error{here.Announce(t.Context(), process, time.Hour), here.Retire(t.Context(), process)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		wantWake(t, gone, "the end of a process in the same database")
		for m := range said {
			if by, used := channels[m.Channel]; used && by != database {
				t.Errorf("the databases %s and %s both use the channel %s", by, database, m.Channel)
			}
			channels[m.Channel] = database
			if m.Payload == newsGone+process {
				break
			}
		}
	}
	if len(channels) != 6 {
		t.Errorf("commits, posts and departures of two databases are published on %v", channels)
	}
	for i, want := range []string{"/1", "/3"} {
		if a, b := <-heard[i], <-heard[i]; a != "a post" || b != "the end of p"+want || len(heard[i]) > 0 {
			t.Errorf("database %s hears %q, %q and %d more", want, a, b, len(heard[i]))
		}
	}
}
