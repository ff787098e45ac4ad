package dataformat

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

func TestParse(t *testing.T) {
	for setting, want := range map[string]int{"": 0, "newest": thread.Format, "8": 8, "9": 9, "10": 10, "11": 11} {
		if got, err := Parse(setting); err != nil || got != want {
			t.Errorf("Parse(%q) = %d, %v", setting, got, err)
		}
	}
	for _, setting := range []string{"7", "12", "0", "-8", "new", "9 "} {
		if _, err := Parse(setting); err == nil || !strings.Contains(err.Error(), "use 8 to 11 or newest") {
			t.Errorf("Parse(%q): %v", setting, err)
		}
	}
}

// alone is a store that keeps no format.
type alone struct{ store.Store }

// failing is a store that does not answer.
type failing struct{ *memstore.Store }

func (failing) AgreeFormat(context.Context, string, store.FormatTerms) (store.Formats, error) {
	return store.Formats{}, context.DeadlineExceeded
}

// agreement is one whose log is read.
func agreement(s store.Store, wants int) (*Agreement, *strings.Builder) {
	text := &strings.Builder{}
	return New(s, false, wants, slog.New(slog.NewTextHandler(text, nil)), nil), text
}

// TestAlone: where no other process can be, the newest format is written, whatever is asked
// for.
func TestAlone(t *testing.T) {
	a := New(alone{memstore.New()}, true, thread.FormatBefore, slog.New(slog.DiscardHandler), nil)
	if err := a.Agree(
		t.Context(),
		"p",
	); err != nil || a.Write() != thread.Format ||
		a.Status().String() != "format 11" {
		t.Errorf("it writes %d: %s, %v", a.Write(), a.Status(), err)
	}
	if f, err := Of(t.Context(), alone{}); err != nil || f.Write != thread.Format || f.Reads != nil {
		t.Errorf("Of: %+v, %v", f, err)
	}
}

// TestNoKeeper: a store that keeps no format, and that others may have open, has the format
// before, unless another one is asked for.
func TestNoKeeper(t *testing.T) {
	for wants, want := range map[int]int{0: thread.FormatBefore, thread.Format: thread.Format} {
		a, text := agreement(alone{memstore.New()}, wants)
		if err := a.Agree(t.Context(), "p"); err != nil || a.Write() != want || text.String() != "" {
			t.Errorf("asked for %d, it writes %d: %v\n%s", wants, a.Write(), err, text)
		}
	}
}

// TestUnknown: as long as the store does not answer, the format before is written, and the
// next one may answer.
func TestUnknown(t *testing.T) {
	a, _ := agreement(failing{memstore.New()}, thread.Format)
	if err := a.Agree(
		t.Context(),
		"p",
	); !errors.Is(err, context.DeadlineExceeded) || a.Err() != nil ||
		a.Write() != thread.FormatBefore {
		t.Errorf("%v, %v, it writes %d", err, a.Err(), a.Write())
	}
}

// TestTold: each thing is said once.
func TestTold(t *testing.T) {
	s := memstore.New()
	lives := func(process string, reads int) {
		t.Helper()
		if err := s.Announce(t.Context(), process, time.Hour); err != nil {
			t.Fatal(err)
		}
		if _, err := s.AgreeFormat(
			t.Context(),
			process,
			store.FormatTerms{Reads: reads, Silent: thread.FormatBefore},
		); err != nil &&
			reads > 0 {
			t.Fatal(err)
		}
	}
	agree := func(a *Agreement, text *strings.Builder, want string, wantErr bool) {
		t.Helper()
		text.Reset()
		if err := a.Agree(t.Context(), "p"); (err != nil) != wantErr || (a.Err() != nil) != wantErr {
			t.Errorf("%v, %v", err, a.Err())
		}
		if got := text.String(); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("the log says %q, want %q", got, want)
		}
	}
	lives("old", 8)
	if err := s.Announce(t.Context(), "p", time.Hour); err != nil {
		t.Fatal(err)
	}
	plain, text := agreement(s, 0)
	agree(plain, text, "ask for the newer one with --data-format", false)
	agree(plain, text, "", false)
	eager, said := agreement(s, thread.Format)
	agree(eager, said, `servers="old (reads 8)"`, false)
	agree(eager, said, "", false)
	lives("older", 8)
	agree(eager, said, `servers="old (reads 8), older (reads 8)"`, false)
	if got := eager.Status().
		String(); got != "format 8; format 11 is held back by servers that do not read it: old (reads 8), older (reads 8)" {
		t.Error(got)
	}
	for _, process := range []string{"old", "older"} {
		if err := s.Retire(t.Context(), process); err != nil {
			t.Fatal(err)
		}
	}
	agree(eager, said, "writes a newer data format from now on", false)
	agree(plain, text, "writes a newer data format from now on", false)
	if f, err := Of(t.Context(), s); err != nil || f.Write != 11 || f.Reads["p"] != 11 {
		t.Errorf("Of: %+v, %v", f, err)
	}
	if _, err := s.AgreeFormat(t.Context(), "next", store.FormatTerms{Reads: 12, Knows: 12}); err != nil {
		t.Fatal(err)
	}
	agree(plain, text, "replace it by a newer version", true)
	agree(plain, text, "", true)
	fresh, none := agreement(s, 0)
	agree(fresh, none, "", true) // the error says it all
}

// TestOfSilent: a store that only versions without formats have used has theirs.
func TestOfSilent(t *testing.T) {
	s := memstore.New()
	if f, err := Of(t.Context(), s); err != nil || f.Write != 0 {
		t.Errorf("a new store: %+v, %v", f, err)
	}
	if err := s.Announce(t.Context(), "old", time.Hour); err != nil {
		t.Fatal(err)
	}
	if f, err := Of(
		t.Context(),
		s,
	); err != nil || f.Write != thread.FormatBefore ||
		f.Reads["old"] != thread.FormatBefore {
		t.Errorf("with a silent server: %+v, %v", f, err)
	}
}
