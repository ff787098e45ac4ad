package filestore

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/holdfast-agents/holdfast/store"
)

// Commits that are written in steps: others see all of one or nothing, and what is not
// finished leaves nothing behind.

// leftIn returns how many threads have something in the store, and how many of them are
// marked as unfinished.
func leftIn(t *testing.T, s *Store) (threads, marks int) {
	t.Helper()
	err := s.committer.view(t.Context(), func(v view) error {
		numbers, err := v.unfinished()
		if err != nil {
			return err
		}
		marks = len(numbers)
		seen := map[string]bool{}
		prefix := []byte{spaceThreads}
		err = v.ascend(prefix, prefix, func(k, _ []byte) (bool, error) {
			seen[string(k[:9])] = true
			return true, nil
		})
		threads = len(seen)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return threads, marks
}

// unfinishedCommit writes some steps of a commit, and no more.
func unfinishedCommit(t *testing.T, s *Store) *store.Commit {
	t.Helper()
	c := manyMessages(t, s, 1)
	p := newCommit(s.codec, c)
	for from := 0; from < 3*stepMessages; from += stepMessages {
		step := &step{c: p, from: from, to: from + stepMessages}
		if err := s.committer.submit(t.Context(), step); err != nil {
			t.Fatal(err)
		}
		p.number = step.number
	}
	return c
}

// TestStepsAreNotSeen: the messages of a commit that is not finished belong to no thread,
// and another process removes what is left of it, as the store is opened.
func TestStepsAreNotSeen(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s := openAt(t, dir)
	c := unfinishedCommit(t, s)
	if _, err := s.Head(t.Context(), c.Key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the thread is there: %v", err)
	}
	if heads, _, err := s.Walk(t.Context(), "", 10); len(heads) != 0 || err != nil {
		t.Errorf("it is listed: %v, %v", heads, err)
	}
	if threads, marks := leftIn(t, s); threads != 1 || marks != 1 {
		t.Errorf("%d threads and %d marks", threads, marks)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, dir)
	// A batch written after it was opened comes after that was removed, or has another number.
	for n := range 2 {
		if err := s.Commit(t.Context(), manyMessages(t, s, 1+n)); err != nil {
			t.Fatal(err)
		}
	}
	s.committer.keeping.Wait()
	if threads, marks := leftIn(t, s); threads != 2 || marks != 0 {
		t.Errorf("after it was opened again: %d threads and %d marks", threads, marks)
	}
	if messages, err := s.Messages(t.Context(), c.Key); len(messages) != len(c.Messages) || err != nil {
		t.Errorf("%d of %d messages: %v", len(messages), len(c.Messages), err)
	}
}

// TestStepsLeftWithoutRoom: what is left is removed when there is room for that, if the
// store had none when it was opened.
func TestStepsLeftWithoutRoom(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s := openAt(t, dir)
	unfinishedCommit(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	f := crowded("MANIFEST")
	f.on.Store(true)
	s = faulty(t, dir, f)
	w := newWriter(t, s, 1)
	w.mustRefuse(w.next(100))
	f.on.Store(false)
	w.write(t.Context(), 1, 100)
	s.committer.keeping.Wait()
	if threads, marks := leftIn(t, s); threads != 1 || marks != 0 {
		t.Errorf("%d threads and %d marks are left", threads, marks)
	}
}

// TestStepsOfOneWin: of several that create the same thread one succeeds, with all of its
// messages and none of the others'; to commit it again succeeds without writing.
func TestStepsOfOneWin(t *testing.T) {
	t.Parallel()
	s := openAt(t, filepath.Join(t.TempDir(), "data"))
	commits := make([]*store.Commit, 4)
	results := make([]error, len(commits))
	var wg sync.WaitGroup
	for i := range commits {
		commits[i] = manyMessages(t, s, 1)
		commits[i].ID += string(rune('a' + i))
		commits[i].Messages = commits[i].Messages[:2000+i]
		wg.Go(func() { results[i] = s.Commit(t.Context(), commits[i]) })
	}
	wg.Wait()
	winner := -1
	for i, err := range results {
		switch {
		case err == nil && winner < 0:
			winner = i
		case !errors.Is(err, store.ErrConflict):
			t.Errorf("commit %d: %v", i, err)
		}
	}
	if winner < 0 {
		t.Fatal("none has succeeded")
	}
	messages, err := s.Messages(t.Context(), commits[winner].Key)
	if err != nil || len(messages) != len(commits[winner].Messages) {
		t.Errorf("%d of %d messages: %v", len(messages), len(commits[winner].Messages), err)
	}
	if err := s.Commit(t.Context(), commits[winner]); err != nil {
		t.Errorf("again: %v", err)
	}
	if threads, marks := leftIn(t, s); threads != 1 || marks != 0 {
		t.Errorf("%d threads and %d marks are left", threads, marks)
	}
}

// TestStepsOfAnInvalidCommit: a commit that no thread can take leaves nothing.
func TestStepsOfAnInvalidCommit(t *testing.T) {
	t.Parallel()
	s := openAt(t, filepath.Join(t.TempDir(), "data"))
	c := manyMessages(t, s, 1)
	c.Messages[5000].Parent = "unknown"
	if err := s.Commit(t.Context(), c); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	if threads, marks := leftIn(t, s); threads != 0 || marks != 0 {
		t.Errorf("%d threads and %d marks are left", threads, marks)
	}
}

// manyMessages is the first commit of thread n, with 10,001 messages.
func manyMessages(t *testing.T, s *Store, n int) *store.Commit {
	c := newWriter(t, s, n).next(100)
	for n := range 10_000 {
		c.Messages = append(c.Messages,
			store.Message{ID: fmt.Sprintf("m%d", n), Parent: c.Messages[n].ID, Data: []byte("text")})
	}
	return c
}
