package filestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

const (
	// trialsVariable says how many times TestDamage damages a store.
	trialsVariable = "FILESTORE_TEST_TRIALS"
	// seedVariable has it damage the same places again.
	seedVariable = "FILESTORE_TEST_SEED"
	// usualTrials is how often it does so without the variable, always at the same places.
	usualTrials = 16
)

// fromEnvironment is the number in a variable, or another one without it.
func fromEnvironment(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// history is what a store held, thread by thread and commit by commit.
type history struct {
	dir     string
	threads map[store.ThreadKey][]string // by commit, from the first; see snapshot
	size    int64                        // of all files
}

// snapshot is everything of a thread, as a text. A thread that is not there is "".
func snapshot(ctx context.Context, s *Store, key store.ThreadKey) (string, error) {
	head, err := s.Head(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	messages, err1 := s.Messages(ctx, key)
	records, err2 := s.Records(ctx, key, store.Cursor{}, 1<<30)
	values, err3 := s.Values(ctx, key, "k", "", 0)
	one, err4 := s.Value(ctx, key, "blob", "b")
	if errors.Is(err4, store.ErrNotFound) {
		err4 = nil
	}
	inbox, err5 := s.Inbox(ctx, key)
	_, err6 := s.Size(ctx, key)
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return "", err
	}
	// JSON has bytes as base64, which takes a fraction of the time that fmt takes for them.
	text, err := json.Marshal([]any{head, messages, records, values, one, inbox})
	return string(text), err
}

// grow makes a store of several tables and a log, and notes its history.
func grow(t *testing.T, r *rand.Rand) *history {
	t.Helper()
	h := &history{dir: filepath.Join(t.TempDir(), "data"), threads: map[store.ThreadKey][]string{}}
	writers := make([]*writer, 12)
	for n := range writers {
		writers[n] = newWriter(t, nil, n)
		h.threads[writers[n].head.Key] = []string{""}
	}
	// What a store has in its log when it is closed is in a table when it is opened.
	for range 5 {
		s := openAt(t, h.dir)
		for range 60 {
			w := writers[r.IntN(len(writers))]
			w.s = s
			c := w.next(20 + r.IntN(3000))
			c.UpdatedAt = time.Unix(1_800_000_000+r.Int64N(1e6), 0)
			c.Put = append(c.Put, store.Value{Kind: "blob", ID: "b", Data: words(20 + r.IntN(3000))})
			c.Records = append(c.Records, words(20+r.IntN(200)))
			if err := s.Commit(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			w.head.Fence, w.head.Next, w.head.ETag = c.Fence, w.head.Next+2, c.ID
			now, err := snapshot(t.Context(), s, w.head.Key)
			if err != nil {
				t.Fatal(err)
			}
			h.threads[w.head.Key] = append(h.threads[w.head.Key], now)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range files(t, h.dir) {
		h.size += int64(len(text))
	}
	return h
}

// TestDamage damages a store at random places. Whatever is damaged is refused loudly, or
// every thread is read exactly as it was at one of its commits. With
// FILESTORE_TEST_TRIALS it does so more often than the tests have time for.
func TestDamage(t *testing.T) {
	t.Parallel()
	trials := fromEnvironment(t, trialsVariable, usualTrials)
	otherwise := uint64(1)
	if trials > usualTrials {
		otherwise = uint64(time.Now().UnixNano())
	}
	seed := fromEnvironment(t, seedVariable, otherwise)
	t.Logf("%s=%d", seedVariable, seed)
	r := rand.New(rand.NewPCG(seed, 1))
	h := grow(t, r)
	found := map[string]int{}
	for n := range trials {
		dir := filepath.Join(t.TempDir(), "data")
		if err := os.CopyFS(dir, os.DirFS(h.dir)); err != nil {
			t.Fatal(err)
		}
		what := h.damage(t, r, dir, n%2 == 0)
		found[h.look(t, dir, what)]++
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%v", found)
	if found["refused"] == 0 || found["unreadable"] == 0 || found["earlier"] == 0 {
		t.Errorf("not everything came up: %v", found)
	}
}

// damage flips a bit, or cuts a file off, at a random place. Every byte of the store is
// as likely as any other.
func (h *history) damage(t *testing.T, r *rand.Rand, dir string, flip bool) (what string) {
	t.Helper()
	at := r.Int64N(h.size)
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || what != "" {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil || at >= int64(len(text)) {
			at -= int64(len(text))
			return err
		}
		what = fmt.Sprintf("%s cut to %d of %d bytes", d.Name(), at, len(text))
		if flip {
			bit := r.IntN(8)
			what = fmt.Sprintf("%s, bit %d of byte %d of %d", d.Name(), bit, at, len(text))
			text[at] ^= 1 << bit
			at = int64(len(text))
		}
		return os.WriteFile(name, text[:at], 0o600)
	})
	if err != nil || what == "" {
		t.Fatal(what, err)
	}
	return what
}

// goesOn makes new threads, and returns how many. One whose name belongs where something
// is damaged cannot be made, because it may be there already.
func goesOn(t *testing.T, s *Store, what string) (made int) {
	t.Helper()
	for _, tenant := range []string{"A", "zz"} {
		w := newWriter(t, s, 1)
		w.head.Key.Tenant = tenant
		switch err := s.Commit(t.Context(), w.next(100)); {
		case err == nil:
			made++
		case !errors.Is(err, store.ErrUnreadable):
			t.Errorf("%s: a new thread: %v", what, err)
		}
	}
	return made
}

// look opens what is damaged and says what became of it.
func (h *history) look(t *testing.T, dir, what string) string {
	t.Helper()
	s, err := Open(dir, Options{})
	if err != nil {
		if !errors.Is(err, store.ErrUnreadable) || !strings.Contains(err.Error(), "put a backup in its place") {
			t.Errorf("%s: it was refused with %v", what, err)
		}
		return "refused"
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}()
	made, lost := goesOn(t, s, what), 0
	result := "whole"
	for key, commits := range h.threads {
		text, err := snapshot(t.Context(), s, key)
		switch {
		case errors.Is(err, store.ErrUnreadable):
			result = "unreadable"
			lost++
		case err != nil:
			t.Errorf("%s: thread %s: %v", what, key, err)
		case text == commits[len(commits)-1]:
		default:
			if result == "whole" {
				result = "earlier"
			}
			known := false
			for _, c := range commits {
				known = known || c == text
			}
			if !known {
				t.Errorf("%s: thread %s is as it has never been: %.500s", what, key, text)
			}
		}
	}
	if made == 0 && lost == 0 {
		t.Errorf("%s: all threads can be read, but none can be made", what)
	}
	return result
}

// TestDamagedTable: a table that is damaged cannot be merged with others. Commits go on
// all the same, nothing tries it again and again, and the operator is told.
func TestDamagedTable(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s := openAt(t, dir)
	writers := make([]*writer, 20)
	for n := range writers {
		writers[n] = newWriter(t, s, n)
		writers[n].write(t.Context(), 3, 5000)
	}
	if err := s.writing.db.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	table := matching(t, dir, "*.sst")[0]
	text, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	put(t, string(text), table)
	var log strings.Builder
	opened := time.Now()
	s, err = Open(dir, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	readable := 0
	for _, w := range writers {
		w.s = s
		if _, err := snapshot(t.Context(), s, w.head.Key); err == nil {
			readable++
		} else if !errors.Is(err, store.ErrUnreadable) {
			t.Error(err)
		}
	}
	if readable < len(writers)/2 || readable == len(writers) {
		t.Errorf("%d of %d threads can be read", readable, len(writers))
	}
	for range 30 {
		for _, w := range writers {
			c := w.next(100)
			if err := s.Commit(t.Context(), c); err == nil {
				w.done(c)
			} else if !errors.Is(err, store.ErrUnreadable) {
				t.Errorf("%s: %v", w.head.Key, err)
			}
		}
		if err := s.writing.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	newWriter(t, s, 100).write(t.Context(), 10, 100)
	n := s.writing.merges.rests()
	most := 1 // with a rest after each, twice as long each time
	for left, rest := time.Since(opened), firstRest; left >= rest; left, rest = left-rest, 2*rest {
		most++
	}
	if n == 0 || n > most {
		t.Errorf("%d merges have failed in a row, want some, and %d at most", n, most)
	}
	d, err := s.Durability(t.Context())
	if err != nil || !strings.Contains(strings.Join(d.Notes, "\n"), filepath.Base(table)) {
		t.Errorf("%v, %v: want a note about %s", d.Notes, err, table)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), filepath.Base(table)); n != 1 {
		t.Errorf("the log names the table %d times, want once: %s", n, &log)
	}
}

// TestReadDamaged: what is whole of a damaged store can be read, although no server
// starts with it, and nothing of it changes. Of a table that is lost everything is
// that lies between its first key and its last one.
func TestReadDamaged(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"a table is cut":     func(t *testing.T, dir string) { truncate(t, dir, "*.sst") },
		"a table is missing": func(t *testing.T, dir string) { remove(t, dir, "*.sst") },
		"the log is damaged": func(t *testing.T, dir string) {
			log := matching(t, dir, "*.log")[0]
			text, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			text[len(text)/2] ^= 1
			put(t, string(text), log)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			old, young := newWriter(t, openAt(t, dir), 1), newWriter(t, nil, 2)
			old.write(t.Context(), 20, 100)
			if err := old.s.Close(); err != nil {
				t.Fatal(err)
			}
			young.s = openAt(t, dir)
			young.write(t.Context(), 20, 100)
			if err := young.s.Close(); err != nil {
				t.Fatal(err)
			}
			spoil(t, dir)
			before := files(t, dir)
			if err := refused(t, dir); !errors.Is(err, store.ErrUnreadable) {
				t.Errorf("it was refused with %v", err)
			}
			s, err := Open(dir, Options{ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			_, err1 := snapshot(t.Context(), s, old.head.Key)
			_, err2 := snapshot(t.Context(), s, young.head.Key)
			_, _, err3 := s.Walk(t.Context(), "", 100)
			if err1 != nil && name == "the log is damaged" || !errors.Is(errors.Join(err1, err2, err3), store.ErrUnreadable) {
				t.Errorf("the old thread: %v; the young one: %v; the list: %v", err1, err2, err3)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(before, files(t, dir)) {
				t.Error("what was only read was changed")
			}
		})
	}
}
