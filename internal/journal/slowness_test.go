package journal

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// paced is a store whose commits take a time.
type paced struct {
	takes   time.Duration
	commits int
	shown   time.Time
}

func (s *paced) commit(context.Context, *store.Commit) error {
	s.commits++
	time.Sleep(s.takes)
	return nil
}

// words has a hundred words said, 20 ms apart, and returns how many commits they were and how long
// the last one waited until it was shown.
func (s *paced) words(t *testing.T, w *Writer) (commits int, waited time.Duration) {
	synctest.Wait()
	before := s.commits
	for range 100 {
		say(t, w, "word ")
		time.Sleep(20 * time.Millisecond)
	}
	last := time.Now()
	say(t, w, "end.")
	time.Sleep(time.Second)
	synctest.Wait()
	return s.commits - before, s.shown.Sub(last)
}

// TestSlowness: words in a quick store wait for nothing, those in a slow one for company, for four
// times its median and a quarter of a second at most, and not any more when it has recovered. The
// first word of an answer never waits.
func TestSlowness(t *testing.T) {
	// No commit ends, and no wait does, at the moment at which a word comes.
	for takes, c := range map[time.Duration]struct {
		without, with int           // commits for a hundred words
		longest       time.Duration // from a word to its being shown
	}{
		time.Millisecond:          {101, 101, time.Millisecond},
		5 * time.Millisecond:      {101, 101, 5 * time.Millisecond},
		7300 * time.Microsecond:   {101, 51, 40 * time.Millisecond},
		39700 * time.Microsecond:  {52, 14, 200 * time.Millisecond},
		119300 * time.Microsecond: {18, 9, 370 * time.Millisecond},
	} {
		t.Run(takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slowness := &Slowness{}
				s := &paced{takes: takes}
				open := func(slow *Slowness) *Writer {
					return writer(t, &slowStore{}, func(c *Config) {
						c.Commit, c.Slowness = s.commit, slow
						c.Shown = func([]store.Record) { s.shown = time.Now() }
					})
				}
				end := func(w *Writer) {
					if err := w.Close(t.Context(), ""); err != nil {
						t.Error(err)
					}
				}
				w := open(nil)
				time.Sleep(time.Second)
				if n, _ := s.words(t, w); n != c.without {
					t.Errorf("without it, a hundred words were %d commits, want %d", n, c.without)
				}
				end(w)
				w = open(slowness)
				time.Sleep(time.Second)
				n, waited := s.words(t, w)
				if n != c.with || waited > c.longest {
					t.Errorf("with it, they were %d commits, and the last one waited %s, want %d and %s at most", n,
						waited, c.with, c.longest)
				}
				end(w)
				w = open(slowness) // another run of the process
				time.Sleep(time.Second)
				first := time.Now()
				say(t, w, "first ")
				time.Sleep(time.Second)
				synctest.Wait()
				if waited := s.shown.Sub(first); waited != takes {
					t.Errorf("the first word waited %s, want %s", waited, takes)
				}
				s.takes = time.Millisecond
				s.words(t, w)
				if n, waited := s.words(t, w); n != 101 || waited != s.takes {
					t.Errorf("when it has recovered, they are %d commits, and the last one waits %s", n, waited)
				}
				end(w)
			})
		})
	}
}
