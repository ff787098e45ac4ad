package states_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-agents/holdfast/internal/filestore"
	"github.com/holdfast-agents/holdfast/internal/jsonpatch"
	"github.com/holdfast-agents/holdfast/internal/redisstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/looptest"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/store"
)

// sampled is how many sequences are tried of each store, unless HOLDFAST_STATES says how many.
const sampled = 6

// play plays a sequence: two pages edit the document, and a tool, and requests; pages are loaded again, and
// servers die. It returns what is wrong.
func play(t testing.TB, db store.Store, seed uint64, drops bool) []string {
	s := newScene(t, db, seed)
	defer s.end()
	pages := []*page{
		{s: s, name: "one", doc: "{}", names: seed%2 == 0, chat: seed%3 == 0},
		{s: s, name: "two", doc: "{}", names: seed%4 < 2, chat: seed%5 == 0},
	}
	pages[0].post()
	pages[1].load()
	s.drops = drops
	for range 3 + s.draw(4) {
		switch one, other := pages[s.draw(2)], pages[s.draw(2)]; s.draw(6) {
		case 0:
			s.patch()
		case 1:
			one.load()
		default:
			run(s, one, other)
		}
	}
	s.drops = false
	s.check(pages)
	return s.problems
}

// run plays a run that a page begins. The other page may watch it, requests change the state meanwhile, and
// servers die.
func run(s *scene, one, other *page) {
	var all sync.WaitGroup
	patches, dies := s.draw(3), s.draw(3) == 0
	after := func() time.Duration { return time.Duration(s.draw(4000)) * time.Microsecond }
	all.Go(func() {
		for range patches {
			wait.Pass(after())
			s.patch()
		}
	})
	if dies {
		all.Go(func() {
			wait.Pass(after())
			s.kill()
		})
	}
	watches := other != one && s.draw(2) == 0
	if watches {
		all.Go(func() {
			wait.Pass(after())
			other.load()
		})
	}
	began := one.post()
	all.Wait()
	if began {
		one.compare()
	}
}

// compare compares what the page has with what its last run has left, if nothing has changed that since.
func (p *page) compare() {
	ended := p.s.ended()
	head, err := current(p.s)
	if err != nil || head != ended {
		return // a request has changed it, or the run goes on
	}
	if !jsonpatch.Equal([]byte(p.doc), []byte(ended)) {
		p.s.wrong("page %s has %s, and its run has left %s", p.name, p.doc, ended)
	}
}

// current returns the document of the thread as it is now.
func current(s *scene) (string, error) {
	state, err := s.any().Keeper.State(context.Background(), looptest.Alice, "t")
	if err != nil {
		return "", err
	}
	return string(state.State), nil
}

// TestStates: whatever pages, tools and requests do at once, and whatever dies, all watchers and the server end
// with the same document, and each accepted change is in it, once. make states tries 2,000 sequences on each
// store.
func TestStates(t *testing.T) {
	most, whole := sampled, false
	if text := os.Getenv("HOLDFAST_STATES"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("HOLDFAST_STATES=%s is no number", text)
		}
		most, whole = n, true
	}
	first := uint64(0)
	if text := os.Getenv("HOLDFAST_TEST_PART"); text != "" && !whole {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		first = n * sampled
	}
	for name, open := range stores(whole) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next, begun := open(t), time.Now()
			failed := 0
			for i := range uint64(most) {
				db := next()
				problems := play(t, db, first+i, false)
				if err := db.Close(); err != nil {
					t.Error(err)
				}
				if len(problems) > 0 {
					t.Errorf("seed %d: %s", first+i, strings.Join(problems, "\n"))
					if failed++; failed == 5 {
						t.FailNow()
					}
				}
			}
			t.Logf("| %s | %d sequences | %s |", name, most, time.Since(begun).Round(time.Second))
		})
	}
}

// stores returns the stores that are tried: whole is for the campaign, which has a real Redis.
func stores(whole bool) map[string]func(t *testing.T) func() store.Store {
	return map[string]func(t *testing.T) func() store.Store{
		"embedded": func(t *testing.T) func() store.Store {
			n := 0
			return func() store.Store {
				n++
				dir := filepath.Join(t.TempDir(), fmt.Sprint(n))
				return looptest.Must(filestore.Open(dir, filestore.Options{}))(t)
			}
		},
		"redis": func(t *testing.T) func() store.Store {
			url := ""
			if whole {
				url = redistest.Start(t).URL()
			} else {
				url = "redis://" + miniredis.RunT(t).Addr()
			}
			n := 0
			return func() store.Store {
				n++
				return looptest.Must(redisstore.Open(t.Context(), url,
					redisstore.Options{Prefix: fmt.Sprintf("s%d:", n)}))(t)
			}
		},
	}
}

// TestDroppedPatchIsFound: a page that loses one patch is found.
func TestDroppedPatchIsFound(t *testing.T) {
	for seed := range uint64(500) { // the first few of them usually do
		db := looptest.Must(filestore.Open(filepath.Join(t.TempDir(), "data"), filestore.Options{}))(t)
		problems := play(t, db, seed, true)
		_ = db.Close()
		if len(problems) > 0 {
			return
		}
	}
	t.Error("pages that lose patches are not found")
}
