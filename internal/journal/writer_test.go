package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/store"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// slowStore takes a second for each commit, and refuses those that it is told to.
type slowStore struct {
	commits []store.Commit
	refuse  []error // the next answers; nil accepts
	shown   []string
	back    []time.Duration
}

func (s *slowStore) commit(ctx context.Context, c *store.Commit) error {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.commits = append(s.commits, *c)
	if len(s.refuse) > 0 {
		err := s.refuse[0]
		s.refuse = s.refuse[1:]
		return err
	}
	return nil
}

// texts are the records of a commit, in short.
func texts(records [][]byte) string {
	var out []string
	for _, r := range records {
		switch agui.TypeOf(r) {
		case agui.TypeTextMessageContent:
			_, text, _ := strings.Cut(string(r), `"delta":"`)
			out = append(out, strings.TrimSuffix(text, `"}`))
		default:
			out = append(out, string(agui.TypeOf(r)))
		}
	}
	return strings.Join(out, " ")
}

// writer is a Writer on the store, with an open message.
func writer(t *testing.T, s *slowStore, change func(*Config)) *Writer {
	t.Helper()
	serial := 0
	cfg := Config{
		Process: "p1", Now: clock.Wall, Commit: s.commit, GiveUp: 30 * time.Second, Limit: 1000,
		NewID: func(prefix string) string { serial++; return fmt.Sprint(prefix, serial) },
		Shown: func(records []store.Record) {
			for _, r := range records {
				s.shown = append(s.shown, fmt.Sprint(r.Number, " ", agui.TypeOf(r.Data)))
			}
		},
		Back: func(outage time.Duration) { s.back = append(s.back, outage) },
	}
	if change != nil {
		change(&cfg)
	}
	var seq agui.Sequencer
	if _, err := seq.Next(agui.RunStarted{ThreadID: "t", RunID: "r"}); err != nil {
		t.Fatal(err)
	}
	head := &store.Head{
		Key:   store.ThreadKey{Tenant: "acme", Thread: "t"},
		Fence: store.Fence{Epoch: 1, Nonce: "abcdefgh"},
		ETag:  "c0",
		Next:  2,
	}
	w := New(cfg, head, seq)
	if err := w.Emit(agui.TextMessageStart{MessageID: "m", Role: "assistant"}); err != nil {
		t.Fatal(err)
	}
	return w
}

func say(t *testing.T, w *Writer, text string) {
	t.Helper()
	if err := w.Delta(t.Context(), agui.TypeTextMessageContent, "m", text); err != nil {
		t.Fatal(err)
	}
}

// TestWhatArrivesMeanwhileIsOneCommit: one commit is in flight; the deltas that come
// meanwhile are one record of the next one, which builds on the first.
func TestWhatArrivesMeanwhileIsOneCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowStore{}
		w := writer(t, s, nil)
		time.Sleep(time.Millisecond) // the first commit is on its way
		for _, text := range []string{"one ", "two ", "three"} {
			say(t, w, text)
		}
		if len(s.shown) > 0 {
			t.Errorf("%q was shown before the store had it", s.shown)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(s.commits) != 2 || texts(s.commits[0].Records) != "TEXT_MESSAGE_START" ||
			texts(s.commits[1].Records) != "one two three" {
			t.Fatalf("got %d commits, the last with %s", len(s.commits), texts(s.commits[len(s.commits)-1].Records))
		}
		first, second := s.commits[0], s.commits[1]
		if want := (store.Position{Fence: first.Fence, Next: 3, ETag: first.ID}); second.Expect != want {
			t.Errorf("the second commit expects %+v, want %+v", second.Expect, want)
		}
		if want := "2 TEXT_MESSAGE_START, 3 TEXT_MESSAGE_CONTENT"; strings.Join(s.shown, ", ") != want {
			t.Errorf("shown are %q, want %s", s.shown, want)
		}
		w.Abandon(errors.New("over"))
	})
}

// TestTriesAgainUnderOneID: while the store is away the same commit is tried, so it is
// never written twice; then the log says how long it took.
func TestTriesAgainUnderOneID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("no route")
		s := &slowStore{refuse: []error{away, away, nil}}
		w := writer(t, s, nil)
		// The notice of the outage is written after the commit that was tried again.
		for range 2 {
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if len(s.commits) < 3 || s.commits[0].ID != s.commits[1].ID || s.commits[1].ID != s.commits[2].ID {
			t.Fatalf("got %d commits, the first %s, %s", len(s.commits), s.commits[0].ID, s.commits[1].ID)
		}
		if len(s.back) != 1 || s.back[0] < time.Second {
			t.Errorf("the outages are %v", s.back)
		}
		if last := texts(s.commits[len(s.commits)-1].Records); last != "CUSTOM" {
			t.Errorf("the last commit has %s, want the notice of the outage", last)
		}
		w.Abandon(errors.New("over"))
	})
}

// TestRefusalsEndTheWriter: a lost fence is never tried again, and a store that stays away
// is given up; nothing can be written after either.
func TestRefusalsEndTheWriter(t *testing.T) {
	for name, c := range map[string]struct {
		refuse error
		want   error
		tries  int
		change func(*Config)
	}{
		"fenced":       {store.ErrFenced, store.ErrFenced, 1, nil},
		"conflict":     {store.ErrConflict, store.ErrConflict, 1, nil},
		"at once":      {errors.New("away"), ErrClosed, 1, func(c *Config) { c.StopAtOnce = true }},
		"after a time": {errors.New("away"), ErrClosed, 3, func(c *Config) { c.GiveUp = 3500 * time.Millisecond }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &slowStore{}
				for range 100 {
					s.refuse = append(s.refuse, c.refuse)
				}
				w := writer(t, s, c.change)
				if err := w.Flush(t.Context()); err == nil {
					t.Fatal("what was refused is said to be durable")
				}
				if err := w.Emit(agui.TextMessageEnd{MessageID: "m"}); !errors.Is(err, c.want) ||
					!errors.Is(err, ErrClosed) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if len(s.commits) != c.tries || len(s.shown) > 0 {
					t.Errorf("%d tries, want %d; shown are %q", len(s.commits), c.tries, s.shown)
				}
				w.Abandon(errors.New("over"))
			})
		})
	}
}

// TestFinishGivesTheThreadUp: the run's last event and the end of the ownership are one
// commit, after which nothing runs.
func TestFinishGivesTheThreadUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowStore{}
		w := writer(t, s, nil)
		ended := false
		err := w.Finish(t.Context(), []agui.Event{agui.RunFinished{ThreadID: "t", RunID: "r"}},
			func(c *store.Commit, last store.Cursor) {
				ended = last.Number == 4 && last.Tag == "abcdef"
			})
		if err != nil || !ended {
			t.Fatalf("got %v, and the last record in place: %t", err, ended)
		}
		last := s.commits[len(s.commits)-1]
		if last.Process != "" || !strings.HasSuffix(texts(last.Records), "TEXT_MESSAGE_END RUN_FINISHED") {
			t.Errorf("the last commit leaves the owner %q and has %s", last.Process, texts(last.Records))
		}
		if err := w.Emit(agui.RunError{Message: "m"}); !errors.Is(err, ErrClosed) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// TestOutageIsNotedBeforeTheEnd: what the Writer has to say of an outage comes before an
// end that was added meanwhile, and the end knows its place.
func TestOutageIsNotedBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowStore{refuse: []error{errors.New("away")}}
		w := writer(t, s, nil)
		synctest.Wait() // the first commit is in flight
		var end store.Cursor
		if err := w.Finish(t.Context(), []agui.Event{agui.RunFinished{ThreadID: "t", RunID: "r"}},
			func(_ *store.Commit, last store.Cursor) { end = last }); err != nil {
			t.Fatal(err)
		}
		last := s.commits[len(s.commits)-1]
		if got := texts(last.Records); got != "CUSTOM TEXT_MESSAGE_END RUN_FINISHED" || end.Number != 5 ||
			s.shown[len(s.shown)-1] != "5 RUN_FINISHED" {
			t.Errorf("the last commit has %s, shown is %q, and the end is at %d", got, s.shown, end.Number)
		}
	})
}

// TestFullWriterHoldsTheModelBack: deltas wait once more than the limit is waiting.
func TestFullWriterHoldsTheModelBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowStore{}
		w := writer(t, s, func(c *Config) { c.Limit = 10 })
		began := time.Now()
		say(t, w, strings.Repeat("x", 20))
		if took := time.Since(began); took < time.Second {
			t.Errorf("it waited %s, want until the store has it", took)
		}
		w.Abandon(errors.New("over"))
	})
}

// TestQuickWordsWaitForCompany: words that come faster than the store takes them wait a
// little for more, so that the beginning of the next answer is one commit with the rest of
// it. Words that come one by one are committed at once.
func TestQuickWordsWaitForCompany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowStore{}
		w := writer(t, s, nil)
		commit := func(answer func()) (commits int) {
			before := len(s.commits)
			answer()
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return len(s.commits) - before
		}
		answer := func(words int, pause time.Duration) func() {
			return func() {
				for range words {
					say(t, w, "word ")
					time.Sleep(pause)
				}
			}
		}
		slowly := 2 * time.Second                    // each word has a commit of its own, of a second
		if err := w.Flush(t.Context()); err != nil { // the beginning of the message
			t.Fatal(err)
		}
		synctest.Wait()
		for _, c := range []struct {
			what    string
			answer  func()
			commits int
		}{
			{"slow words", answer(3, slowly), 3},
			{"the first quick ones", answer(20, time.Microsecond), 2},
			{"the next", answer(20, time.Microsecond), 1},
			{"the first slow one after them", answer(1, slowly), 1},
			{"slow words again", answer(3, slowly), 3},
		} {
			if n := commit(c.answer); n != c.commits {
				t.Errorf("%s took %d commits, want %d", c.what, n, c.commits)
			}
		}
		// A waiting batch is committed after a moment, also without a flush.
		commit(answer(20, time.Microsecond))
		before := len(s.commits)
		say(t, w, "late ")
		time.Sleep(company + time.Millisecond)
		synctest.Wait()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(s.commits) != before+1 {
			t.Errorf("a word that waited took %d commits, want 1", len(s.commits)-before)
		}
		w.Abandon(errors.New("over"))
	})
}
