package dataformat

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

func TestParse(t *testing.T) {
	for setting, want := range map[string]int{
		"":                                0,
		"newest":                          thread.Format,
		strconv.Itoa(thread.FormatBefore): thread.FormatBefore,
		strconv.Itoa(thread.Format):       thread.Format,
	} {
		if got, err := Parse(setting); err != nil || got != want {
			t.Errorf("Parse(%q) = %d, %v", setting, got, err)
		}
	}
	use := "use " + written() + " or newest"
	for _, setting := range []string{"99", "0", "-1", "new", "1 "} {
		if _, err := Parse(setting); err == nil || !strings.Contains(err.Error(), use) {
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

// The formats of an invented version, which reads what came before and one more.
const (
	oldFormat = 1
	newFormat = 2
)

// agreement is that of a process of the invented version, whose log is read.
func agreement(s store.Store, wants int) (*Agreement, *strings.Builder) {
	text := &strings.Builder{}
	a := New(s, false, wants, slog.New(slog.NewTextHandler(text, nil)), nil)
	a.reads, a.before = newFormat, oldFormat
	return a, text
}

// TestAlone: where no other process can be, the newest format is written, whatever is asked
// for.
func TestAlone(t *testing.T) {
	a := New(alone{memstore.New()}, true, thread.FormatBefore, slog.New(slog.DiscardHandler), nil)
	err := a.Agree(t.Context(), "p")
	if err != nil || a.Write() != thread.Format || a.Status().String() != fmt.Sprint("format ", thread.Format) {
		t.Errorf("it writes %d: %s, %v", a.Write(), a.Status(), err)
	}
	if f, err := Of(t.Context(), alone{}); err != nil || f.Write != thread.Format || f.Reads != nil {
		t.Errorf("Of: %+v, %v", f, err)
	}
}

// TestNoKeeper: a store that keeps no format, and that others may have open, has the format
// before, unless another one is asked for.
func TestNoKeeper(t *testing.T) {
	for wants, want := range map[int]int{0: oldFormat, newFormat: newFormat} {
		a, text := agreement(alone{memstore.New()}, wants)
		if err := a.Agree(t.Context(), "p"); err != nil || a.Write() != want || text.String() != "" {
			t.Errorf("asked for %d, it writes %d: %v\n%s", wants, a.Write(), err, text)
		}
	}
}

// TestUnknown: as long as the store does not answer, the format before is written, and the
// next one may answer.
func TestUnknown(t *testing.T) {
	a, _ := agreement(failing{memstore.New()}, newFormat)
	err := a.Agree(t.Context(), "p")
	if !errors.Is(err, context.DeadlineExceeded) || a.Err() != nil || a.Write() != oldFormat {
		t.Errorf("%v, %v, it writes %d", err, a.Err(), a.Write())
	}
}

// told is a store, with the agreements that are made in it.
type told struct {
	*testing.T
	*memstore.Store
}

// lives announces a process that reads a format; 0 for one that has yet to say it.
func (s told) lives(process string, reads int) {
	s.Helper()
	err := s.Announce(s.Context(), process, time.Hour)
	if err == nil && reads > 0 {
		_, err = s.AgreeFormat(s.Context(), process, store.FormatTerms{Reads: reads})
	}
	if err != nil {
		s.Fatal(err)
	}
}

// agree has the process p agree, and expects what is said in the log.
func (s told) agree(a *Agreement, text *strings.Builder, want string, wantErr bool) {
	s.Helper()
	text.Reset()
	if err := a.Agree(s.Context(), "p"); (err != nil) != wantErr || (a.Err() != nil) != wantErr {
		s.Errorf("%v, %v", err, a.Err())
	}
	if got := text.String(); !strings.Contains(got, want) || (want == "") != (got == "") {
		s.Errorf("the log says %q, want %q", got, want)
	}
}

// TestTold: each thing is said once.
func TestTold(t *testing.T) {
	s := told{t, memstore.New()}
	s.lives("old", oldFormat)
	s.lives("p", 0)
	plain, text := agreement(s.Store, 0)
	s.agree(plain, text, "ask for the newer one with --data-format", false)
	s.agree(plain, text, "", false)
	if got := plain.Status().String(); !strings.Contains(got, "--data-format=2 asks for the newer one") {
		t.Error(got)
	}
	eager, said := agreement(s.Store, newFormat)
	s.agree(eager, said, `servers="old (reads 1)"`, false)
	s.agree(eager, said, "", false)
	s.lives("older", oldFormat)
	s.lives("q", 0)
	const behind = "old (reads 1), older (reads 1), q (has not said yet what it reads)"
	s.agree(eager, said, `servers="`+behind+`"`, false)
	want := "format 1; format 2 is held back by servers that do not read it: " + behind
	if got := eager.Status().String(); got != want {
		t.Error(got)
	}
	for _, process := range []string{"old", "older", "q"} {
		if err := s.Retire(t.Context(), process); err != nil {
			t.Fatal(err)
		}
	}
	s.agree(eager, said, "writes a newer data format from now on", false)
	s.agree(plain, text, "writes a newer data format from now on", false)
	if got := plain.Status().String(); got != "format 2" {
		t.Error(got)
	}
	if f, err := Of(t.Context(), s.Store); err != nil || f.Write != newFormat || f.Reads["p"] != newFormat {
		t.Errorf("Of: %+v, %v", f, err)
	}
	if _, err := s.AgreeFormat(t.Context(), "next", store.FormatTerms{Reads: 3, Knows: 3}); err != nil {
		t.Fatal(err)
	}
	s.agree(plain, text, "replace it by a newer version", true)
	s.agree(plain, text, "", true)
	fresh, none := agreement(s.Store, 0)
	s.agree(fresh, none, "", true) // the error says it all
}

// TestOfNew: a new store has no format until a process has agreed on one.
func TestOfNew(t *testing.T) {
	s := told{t, memstore.New()}
	s.lives("p", 0)
	if f, err := Of(t.Context(), s.Store); err != nil || f.Write != 0 || len(f.Reads) != 1 {
		t.Errorf("%+v, %v", f, err)
	}
	s.lives("p", newFormat)
	if f, err := Of(t.Context(), s.Store); err != nil || f.Write != newFormat {
		t.Errorf("%+v, %v", f, err)
	}
}
