package filestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
	"github.com/holdfast-agents/holdfast/store"
)

const (
	// trialsVariable says how many times TestDamage damages a store.
	trialsVariable = "FILESTORE_TEST_TRIALS"
	// seedVariable has it damage the same places again.
	seedVariable = "FILESTORE_TEST_SEED"
	// usualTrials is how often it does so without the variable, always at the same places.
	usualTrials = 24
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

// grow makes a store that was open so many times, and notes its history.
func grow(t *testing.T, r *rand.Rand, times int) *history {
	t.Helper()
	h := &history{dir: filepath.Join(t.TempDir(), "data"), threads: map[store.ThreadKey][]string{}}
	writers := make([]*writer, 12)
	for n := range writers {
		writers[n] = newWriter(t, nil, n)
		h.threads[writers[n].head.Key] = []string{""}
	}
	// The log that a store has when it is closed is in a table when it is opened.
	for range times {
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
	return h
}

// TestDamage damages a store at random places, half of them in small files. Every damage is
// refused loudly, or every thread is read exactly as it was. With FILESTORE_TEST_TRIALS it
// does so more often than the tests have time for.
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
	h := grow(t, r, 5)
	found := map[string]map[string]int{"small": {}, "large": {}}
	for n := range trials {
		dir := h.copy(t)
		size := []string{"small", "large"}[n%2]
		what := h.damage(t, r, dir, size == "small")
		result, wrong := h.look(t, dir, what, Options{})
		for _, text := range wrong {
			t.Error(text)
		}
		found[size][result]++
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, result := range []string{"refused", "unreadable", "whole"} {
		t.Logf("| %s | %d | %d |", outcomes[result], found["small"][result], found["large"][result])
	}
	if found["small"]["refused"] == 0 || found["small"]["whole"] == 0 || found["large"]["unreadable"] == 0 {
		t.Errorf("not everything came up: %v", found)
	}
}

// outcomes say what became of a damaged store, as in docs/durability.md.
var outcomes = map[string]string{
	"refused":    "the server refuses to start, and says what to do",
	"unreadable": "it starts; the threads in the damaged part are reported as unreadable",
	"whole":      "it starts, and every thread is as it was",
}

// TestDamageUnchecked is the control: without the comparison with the inventory, a manifest
// that ends early makes threads vanish, and look sees it.
func TestDamageUnchecked(t *testing.T) {
	t.Parallel()
	h := grow(t, rand.New(rand.NewPCG(1, 1)), 2)
	silent := 0
	for cut := range 12 {
		dir := h.copy(t)
		manifests := matching(t, dir, "MANIFEST*") // the last one is in use
		manifest := manifests[len(manifests)-1]
		info, err := os.Stat(manifest)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(manifest, info.Size()-int64(cut)-1); err != nil {
			t.Fatal(err)
		}
		what := fmt.Sprintf("the manifest without its last %d bytes", cut+1)
		if result, wrong := h.look(t, dir, what, Options{}); result != "refused" || len(wrong) > 0 {
			t.Errorf("%s: %s, %v", what, result, wrong)
		}
		if _, wrong := h.look(t, dir, what, Options{unchecked: true}); len(wrong) > 0 {
			silent++
		}
	}
	if silent == 0 {
		t.Error("no cut was ever silent, so the trials show nothing")
	}
}

// copy copies the store.
func (h *history) copy(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(dir, os.DirFS(h.dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// smallFile is the size below which a file is a small one.
const smallFile = 4 << 10

// damage flips a bit, cuts a file off, or removes it, at a random place. In a small file
// every file is as likely as any other; in a large one, every byte.
func (h *history) damage(t *testing.T, r *rand.Rand, dir string, small bool) (what string) {
	t.Helper()
	all := files(t, dir)
	var names []string
	total := 0
	for name, text := range all {
		if len(text) > 0 && len(text) < smallFile == small {
			names, total = append(names, name), total+len(text)
		}
	}
	slices.Sort(names)
	name, at := names[r.IntN(len(names))], r.IntN(total)
	if !small {
		for _, name = range names {
			if at < len(all[name]) {
				break
			}
			at -= len(all[name])
		}
	}
	text := []byte(all[name])
	at %= len(text)
	switch kind := r.IntN(16); {
	case kind == 0:
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		return filepath.Base(name) + " removed"
	case kind%2 == 0:
		bit := r.IntN(8)
		text[at] ^= 1 << bit
		put(t, string(text), name)
		return fmt.Sprintf("%s, bit %d of byte %d of %d", filepath.Base(name), bit, at, len(text))
	}
	put(t, string(text[:at]), name)
	return fmt.Sprintf("%s cut to %d of %d bytes", filepath.Base(name), at, len(text))
}

// goesOn makes new threads, and returns how many. One whose name belongs where something
// is damaged cannot be made, because it may be there already.
func goesOn(t *testing.T, s *Store) (made int, wrong []string) {
	t.Helper()
	for _, tenant := range []string{"A", "zz"} {
		w := newWriter(t, s, 1)
		w.head.Key.Tenant = tenant
		switch err := s.Commit(t.Context(), w.next(100)); {
		case err == nil:
			made++
		case !errors.Is(err, store.ErrUnreadable):
			wrong = append(wrong, fmt.Sprintf("a new thread: %v", err))
		}
	}
	return made, wrong
}

// look opens what is damaged and says what became of it, and what must not be.
func (h *history) look(t *testing.T, dir, what string, opts Options) (result string, wrong []string) {
	t.Helper()
	defer func() {
		for i := range wrong {
			wrong[i] = what + ": " + wrong[i]
		}
	}()
	s, err := Open(dir, opts)
	if err != nil {
		advised := errors.Is(err, store.ErrUnreadable) && strings.Contains(err.Error(), "put a backup in its place")
		// A file FORMAT that says another number, or is gone, has an answer of its own.
		if !advised && !errors.Is(err, folder.ErrNoStore) && !errors.Is(err, store.ErrVersionTooNew) {
			wrong = append(wrong, fmt.Sprintf("it was refused with %v", err))
		}
		return "refused", wrong
	}
	made, wrong := goesOn(t, s)
	lost := 0
	result = "whole"
	for key, commits := range h.threads {
		text, err := snapshot(t.Context(), s, key)
		switch {
		case errors.Is(err, store.ErrUnreadable):
			result = "unreadable"
			lost++
		case err != nil:
			wrong = append(wrong, fmt.Sprintf("thread %s: %v", key, err))
		case text != commits[len(commits)-1]:
			wrong = append(wrong, fmt.Sprintf("thread %s is not as it was after its last commit, as "+
				"after an earlier one: %t", key, slices.Contains(commits, text)))
		}
	}
	if made == 0 && lost == 0 {
		wrong = append(wrong, "all threads can be read, but none can be made")
	}
	if err := s.Close(); err != nil {
		wrong = append(wrong, err.Error())
	}
	return result, wrong
}

// TestDamagedTable: a table that is damaged cannot be merged with others. Commits still go on,
// nothing tries it again and again, and the operator is told.
func TestDamagedTable(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s := openAt(t, dir)
	writers := make([]*writer, 20)
	for n := range writers {
		writers[n] = newWriter(t, s, n)
		writers[n].write(t.Context(), 3, 5000)
	}
	if err := s.committer.writing.db.Flush(); err != nil {
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
		if err := s.committer.writing.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	newWriter(t, s, 100).write(t.Context(), 10, 100)
	n := s.committer.writing.merges.rests()
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
			if err1 != nil && name == "the log is damaged" ||
				!errors.Is(errors.Join(err1, err2, err3), store.ErrUnreadable) {
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
