package storetest

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// The tests of data formats, for a store that is a [store.FormatKeeper].

// formatTests test [store.FormatKeeper].
func formatTests() map[string]func(*testing.T, store.Store) {
	return map[string]func(*testing.T, store.Store){
		"a new store has the newest format":         onFormats(testNewStore),
		"a process has yet to say what it reads":    onFormats(testSilentReader),
		"a process that reads less holds it back":   onFormats(testOldReader),
		"a process that has left holds back none":   onFormats(testLeftReader),
		"who reads less comes too late":             onFormats(testLateReader),
		"a format that the store has lost":          onFormats(testLostFormat),
		"two processes ask at the same time":        onFormats(testTwoAsk),
		"what is read is told, and changes nothing": onFormats(testFormats),
	}
}

// keeper is a store that keeps formats.
type keeper struct {
	t       *testing.T
	store   store.Store
	formats store.FormatKeeper
}

// onFormats skips a store that does not keep formats.
func onFormats(f func(keeper)) func(*testing.T, store.Store) {
	return func(t *testing.T, s store.Store) {
		k, can := s.(store.FormatKeeper)
		if !can {
			t.Skip("only one process can have the store open, so it keeps no data format")
		}
		f(keeper{t, s, k})
	}
}

// agrees expects the format, and who holds another one back.
func (k keeper) agrees(process string, reads, wants, knows, write int, behind map[string]int) {
	k.t.Helper()
	got, err := k.formats.AgreeFormat(k.t.Context(), process,
		store.FormatTerms{Reads: reads, Wants: wants, Knows: knows})
	if err != nil || got.Write != write || !maps.Equal(got.Reads, behind) {
		k.t.Fatalf("%s reads %d and wants %d: %+v, %v; want format %d, held back by %v", process, reads, wants, got,
			err, write, behind)
	}
}

// refuses expects that the process reads too little.
func (k keeper) refuses(process string, reads, write int) {
	k.t.Helper()
	got, err := k.formats.AgreeFormat(k.t.Context(), process, store.FormatTerms{Reads: reads})
	var newer *store.VersionError
	if !errors.As(err, &newer) || newer.Stored != write || newer.Known != reads || got.Write != write {
		k.t.Fatalf("%s reads %d: %+v, %v; want a version error that names %d", process, reads, got, err, write)
	}
}

func (k keeper) announce(process string) {
	k.t.Helper()
	announce(k.t, k.store, process, time.Hour)
}

func testNewStore(k keeper) {
	k.announce("p")
	k.agrees("p", 9, 0, 0, 9, nil)
	k.announce("q")
	k.agrees("q", 9, 0, 0, 9, nil)
}

// oddName is a process whose name needs care.
const oddName = "q {two} 9%"

// testSilentReader: a process that has announced itself, and not said yet what it reads, holds
// every newer format back.
func testSilentReader(k keeper) {
	k.announce("p")
	k.agrees("p", 8, 0, 0, 8, nil)
	k.announce(oddName)
	k.agrees("p", 9, 9, 8, 8, map[string]int{oddName: 0})
	k.agrees("p", 9, 9, 8, 8, map[string]int{oddName: 0})
	retire(k.t, k.store, oddName)
	k.agrees("p", 9, 9, 8, 9, nil)
	k.agrees("p", 9, 9, 9, 9, nil)
}

func testOldReader(k keeper) {
	k.announce("old")
	k.agrees("old", 9, 0, 0, 9, nil)
	k.announce("p")
	k.agrees("p", 11, 11, 0, 9, map[string]int{"old": 9})
	k.agrees("p", 11, 9, 9, 9, nil)
	k.announce("old")
	k.agrees("old", 10, 0, 9, 9, nil)
	k.agrees("p", 11, 11, 9, 9, map[string]int{"old": 10})
	k.agrees("p", 11, 10, 9, 10, nil)
	k.agrees("old", 10, 0, 9, 10, nil)
}

// testLeftReader: neither a lease that has run out nor one that was given up counts.
func testLeftReader(k keeper) {
	announce(k.t, k.store, "dead", shortLease)
	k.announce("gone")
	k.agrees("gone", 8, 0, 0, 8, nil)
	awaitExpiry(k.t, k.store, "dead")
	retire(k.t, k.store, "gone")
	k.announce("p")
	k.agrees("p", 9, 9, 0, 9, nil)
}

// testLateReader: a process that reads less than the others write is told so, and the format
// stays.
func testLateReader(k keeper) {
	k.announce("p")
	k.agrees("p", 9, 9, 0, 9, nil)
	k.announce("late")
	k.refuses("late", 8, 9)
	k.refuses("late", 8, 9)
	k.agrees("p", 9, 9, 9, 9, nil)
	k.agrees("p", 10, 10, 9, 9, map[string]int{"late": 8})
}

// testLostFormat: a store that was restored, or failed over, has what the living knew.
func testLostFormat(k keeper) {
	k.announce("p")
	k.announce("q")
	k.agrees("p", 9, 0, 9, 9, nil)
	k.agrees("q", 9, 0, 8, 9, nil)
	k.agrees("q", 10, 0, 10, 10, nil)
	k.refuses("p", 9, 10)
}

// testTwoAsk: of two that ask at the same time, both get it, and it is never taken back.
func testTwoAsk(k keeper) {
	k.announce("p")
	k.announce("q")
	k.agrees("p", 8, 0, 0, 8, nil)
	k.agrees("q", 9, 0, 0, 8, nil)
	k.agrees("p", 9, 0, 8, 8, nil)
	done := make(chan error, 2)
	for _, process := range []string{"p", "q"} {
		go func() {
			f, err := k.formats.AgreeFormat(k.t.Context(), process, store.FormatTerms{Reads: 9, Wants: 9, Knows: 8})
			if err == nil && f.Write != 9 {
				err = errors.New("not raised for " + process)
			}
			done <- err
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			k.t.Error(err)
		}
	}
	k.agrees("p", 9, 0, 8, 9, nil)
}

func testFormats(k keeper) {
	k.describes(0, nil)
	k.announce("p")
	k.describes(0, map[string]int{"p": 0})
	k.agrees("p", 9, 0, 0, 9, nil)
	k.announce(oddName)
	k.describes(9, map[string]int{"p": 9, oddName: 0})
	retire(k.t, k.store, "p")
	k.describes(9, map[string]int{oddName: 0})
}

// describes expects what Formats returns.
func (k keeper) describes(write int, reads map[string]int) {
	k.t.Helper()
	got, err := k.formats.Formats(k.t.Context())
	if err != nil || got.Write != write || !maps.Equal(got.Reads, reads) {
		k.t.Errorf("%s: Formats returns %+v, %v; want %d and %v", k.t.Name(), got, err, write, reads)
	}
}
