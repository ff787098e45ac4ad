package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// The tests of what processes say of themselves, for a store that is a [store.Roster].

// rosterTests test [store.Roster].
func rosterTests() map[string]func(*testing.T, store.Store) {
	return map[string]func(*testing.T, store.Store){
		"what processes say of themselves": onRoster(testDescribed),
		"what a process says that is gone": onRoster(testDescribedGone),
		"a process says too much":          onRoster(testDescribedTooLong),
	}
}

// enrolled is a store in which processes describe themselves.
type enrolled struct {
	*testing.T
	store  store.Store
	roster store.Roster
}

// onRoster skips a store that is none.
func onRoster(f func(enrolled)) func(*testing.T, store.Store) {
	return func(t *testing.T, s store.Store) {
		r, can := s.(store.Roster)
		if !can {
			t.Skip("only one process can have the store open, so it is no Roster")
		}
		f(enrolled{t, s, r})
	}
}

// says announces a process and has it describe itself.
func (e enrolled) says(process, about string) {
	e.Helper()
	if err := errors.Join(e.store.Announce(e.Context(), process, time.Minute),
		e.roster.Describe(e.Context(), process, []byte(about))); err != nil {
		e.Fatal(err)
	}
}

// want checks what the processes have said; "-" is nothing.
func (e enrolled) want(want map[string]string) {
	e.Helper()
	got, err := e.roster.Described(e.Context())
	if err != nil || len(got) != len(want) {
		e.Fatalf("the processes say %q, %v; want %q", got, err, want)
	}
	for process, about := range want {
		if said, lives := got[process]; !lives || string(said) != about && (said != nil || about != "-") {
			e.Errorf("%s says %q, want %q", process, said, about)
		}
	}
}

func testDescribed(e enrolled) {
	e.want(map[string]string{})
	e.says("p1", "one\x00")
	e.says("p2", "two")
	if err := e.store.Announce(e.Context(), "p3", time.Minute); err != nil {
		e.Fatal(err)
	}
	e.want(map[string]string{"p1": "one\x00", "p2": "two", "p3": "-"})
	e.says("p1", "other")
	e.want(map[string]string{"p1": "other", "p2": "two", "p3": "-"})
	if err := e.store.Announce(e.Context(), "p1", time.Minute); err != nil { // which changes nothing
		e.Fatal(err)
	}
	e.want(map[string]string{"p1": "other", "p2": "two", "p3": "-"})
}

func testDescribedGone(e enrolled) {
	e.says("p1", "one")
	e.says("p2", "two")
	retired, announced := e.store.Retire(e.Context(), "p1"), e.store.Announce(e.Context(), "p2", time.Millisecond)
	if err := errors.Join(retired, announced); err != nil {
		e.Fatal(err)
	}
	awaitExpiry(e.T, e.store, "p2")
	e.want(map[string]string{})
	e.says("p2", "two again")
	e.want(map[string]string{"p2": "two again"})
}

func testDescribedTooLong(e enrolled) {
	e.says("p1", "one")
	err := e.roster.Describe(e.Context(), "p1", make([]byte, store.MaxDescription+1))
	if !errors.Is(err, store.ErrInvalid) {
		e.Errorf("it may say as much as it likes: %v", err)
	}
	e.want(map[string]string{"p1": "one"})
}
