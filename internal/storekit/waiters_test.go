package storekit_test

import (
	"slices"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/storekit"
	"github.com/holdfast-agents/holdfast/store"
)

func key(thread string) store.ThreadKey { return store.ThreadKey{Thread: thread} }

// waiting reports whether a wake-up is waiting, and takes it.
func waiting(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// TestWatch: any number of commits is one wake-up, for everybody who watches this
// thread and has not stopped.
func TestWatch(t *testing.T) {
	t.Parallel()
	var l storekit.Waiters
	l.Committed(key("a")) // nobody watches
	one, stopOne := l.Watch(key("a"))
	two, stopTwo := l.Watch(key("a"))
	other, stopOther := l.Watch(key("b"))
	defer stopOther()
	l.Committed(key("a"))
	l.Committed(key("a"))
	if !waiting(one) || waiting(one) || !waiting(two) || waiting(two) || waiting(other) {
		t.Error("two commits to a are not one wake-up for each of its watchers, and only for them")
	}
	stopOne()
	stopOne() // a second time does no harm
	l.Committed(key("a"))
	if waiting(one) || !waiting(two) {
		t.Error("the watcher that stopped is woken, or the other one is not")
	}
	stopTwo()
	if got := l.Threads(); !slices.Equal(got, []store.ThreadKey{key("b")}) {
		t.Errorf("the watched threads are %v, want only b", got)
	}
}

// TestOnPost: the functions may use the list, because no lock is held.
func TestOnPost(t *testing.T) {
	t.Parallel()
	var l storekit.Waiters
	var first, second []store.ThreadKey
	stop := l.OnPost(func(k store.ThreadKey) {
		first = append(first, k)
		if len(first) == 1 {
			l.OnPost(func(k store.ThreadKey) { second = append(second, k) })
		}
	})
	l.Posted(key("a"))
	l.Posted(key("b"))
	stop()
	stop()
	l.Posted(key("c"))
	if want := []store.ThreadKey{key("a"), key("b")}; !slices.Equal(first, want) {
		t.Errorf("the first function was called with %v, want %v", first, want)
	}
	if want := []store.ThreadKey{key("b"), key("c")}; !slices.Equal(second, want) {
		t.Errorf("the second function was called with %v, want %v", second, want)
	}
}

// TestOnDeparture: everybody but the leaving process is told, and one of them is the heir of a
// thread.
func TestOnDeparture(t *testing.T) {
	t.Parallel()
	var l storekit.Waiters
	if l.HeardDepartures() {
		t.Error("somebody listens to an empty list")
	}
	told := map[string][]store.Departure{}
	var stops []func()
	for _, process := range []string{"a", "b", "c"} {
		stops = append(stops, l.OnDeparture(process, func(d store.Departure) {
			told[process] = append(told[process], d)
		}))
	}
	gone, left := store.Departure{Process: "a"}, store.Departure{Process: "a", Thread: key("t")}
	l.Departed(gone, "")
	l.Departed(left, "c")
	l.Departed(left, "somebody else")
	heir := left
	heir.Heir = true
	if len(told["a"]) > 0 || !slices.Equal(told["b"], []store.Departure{gone, left, left}) ||
		!slices.Equal(told["c"], []store.Departure{gone, heir, left}) {
		t.Errorf("they are told %v", told)
	}
	clear(told)
	l.Departed(left, "")
	if told["b"][0].Heir == told["c"][0].Heir {
		t.Errorf("without a name, they are told %v", told)
	}
	for _, stop := range stops {
		stop()
	}
	if l.HeardDepartures() {
		t.Error("somebody listens who has stopped")
	}
}
