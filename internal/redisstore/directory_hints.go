package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// The hints of the directory: what lets threads be found without looking at all of them. They are written
// before the commit that they announce, each process writes each of them once, and
// whoever reads one asks the head whether it is true.

// hintAge is how old a hint must be before it is removed because no head confirms it:
// until then its commit may still be on the way.
const hintAge = 10 * time.Minute

// hints remembers what this process has announced, so that it does so only once.
// Forgetting is harmless: a hint that is written twice is the same hint.
type hints struct {
	mu        sync.Mutex
	announced map[string]hint // by tag
	last      int64           // the last score of an owned thread
	// wrong are the hints that the last list of owned threads found wrong, with the heads
	// that said so.
	wrong map[claim]string
}

// hint is what the directory knows of a thread.
type hint struct {
	owner   holdfast.Principal
	minute  int64
	process string
	score   int64 // when the process claimed the thread, in µs since 1970
}

// maxHints bounds how many threads a process remembers.
const maxHints = 100_000

func (h *hints) get(tag string) (hint, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	is, known := h.announced[tag]
	return is, known
}

func (h *hints) put(tag string, is hint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.announced == nil || len(h.announced) >= maxHints {
		h.announced = map[string]hint{}
	}
	h.announced[tag] = is
}

func (h *hints) drop(tag string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.announced, tag)
}

// score returns a larger number each time, so that a hint that was written again can
// be distinguished from the one before.
func (h *hints) score(now time.Time) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = max(h.last+1, now.UnixMicro())
	return h.last
}

// doubt remembers which hints were found wrong.
func (h *hints) doubt(wrong map[claim]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrong = wrong
}

// outdated reports whether the hint was found wrong before, when the head was another one.
func (h *hints) outdated(c claim, head string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	before, known := h.wrong[c]
	return known && before != head
}

// minuteOf counts minutes since 1970. A busy thread moves in the list once a minute,
// not in every commit; the order within a minute comes from the heads. It matters that
// a later time never has a smaller minute.
func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// announceAndCommit writes the hints that are new and runs the commit script. The hint
// exists before its commit, so whatever is committed can be found. A new fence means
// that the thread was acquired, which is announced in any case.
func (s *Store) announceAndCommit(ctx context.Context, tag string, c *store.Commit, do call) (int, error) {
	has, known := s.hints.get(tag)
	want := hint{
		owner:   holdfast.Principal{Tenant: c.Key.Tenant, User: c.User},
		minute:  minuteOf(c.UpdatedAt),
		process: c.Process, score: has.score,
	}
	moves := !known || has.owner != want.owner || has.minute != want.minute
	acquires := want.process != "" && (has.process != want.process || c.Fence != c.Expect.Fence)
	if acquires {
		want.score = s.hints.score(s.now())
	}
	says := acquires && s.peers.claims(want.process)
	var hints hintWriter
	if moves || acquires || c.Parent != "" {
		hints = func(pipe redis.Pipeliner) (cmds []redis.Cmder) {
			if c.Parent != "" {
				parent := store.ThreadKey{Tenant: c.Key.Tenant, Thread: c.Parent}
				cmds = append(cmds, pipe.ZAdd(ctx, s.keys.children(parent), redis.Z{Member: c.Key.Thread}))
			}
			if moves {
				cmds = append(cmds, pipe.ZAdd(ctx, s.keys.active(want.owner), redis.Z{Score: float64(want.minute), Member: c.Key.Thread}))
			}
			if acquires {
				cmds = append(cmds, pipe.ZAddNX(ctx, s.keys.processes(), redis.Z{Score: float64(want.score), Member: want.process}),
					pipe.ZAdd(ctx, s.keys.owned(want.process), redis.Z{Score: float64(want.score), Member: tag}))
			}
			if says { // the commit is made even if this fails
				pipe.Publish(ctx, s.keys.peersChannel(), newsClaims+want.process)
			}
			return cmds
		}
	}
	n, err := s.execWithHints(ctx, &request{hints: hints, do: do, large: isLarge(c)})
	if err != nil || n != codeOK {
		// The head does not say what this commit says of the thread, or may not.
		s.hints.drop(tag)
		return n, err
	}
	s.hints.put(tag, want)
	if want.process == "" && has.process != "" {
		// If this fails, the reader of the hint finds that it is wrong.
		_, _ = s.runScript(ctx, s.scripts.release, []string{s.keys.owned(has.process)}, tag, has.score)
	}
	return n, nil
}

// execWithHints writes the hints and then the commit. A single server keeps the order
// of a pipeline; the nodes of a cluster do not.
func (s *Store) execWithHints(ctx context.Context, r *request) (int, error) {
	if s.cluster && r.hints != nil {
		pipe := s.client.Pipeline()
		hinted := r.hints(pipe)
		// Each command has its own error.
		_, _ = pipe.Exec(ctx)
		for _, h := range hinted {
			if err := h.Err(); err != nil {
				return 0, err
			}
		}
		r.hints = nil
	}
	return s.sender.submit(ctx, r)
}

// unlist removes the hints of a deleted thread.
func (s *Store) unlist(ctx context.Context, head *store.Head, parent string) error {
	pipe := s.client.Pipeline()
	owner := holdfast.Principal{Tenant: head.Key.Tenant, User: head.User}
	pipe.ZRem(ctx, s.keys.active(owner), head.Key.Thread)
	if head.Process != "" {
		pipe.ZRem(ctx, s.keys.owned(head.Process), tag(head.Key))
	}
	if parent != "" {
		pipe.ZRem(ctx, s.keys.children(store.ThreadKey{Tenant: head.Key.Tenant, Thread: parent}), head.Key.Thread)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return failed("unlist thread "+head.Key.String(), err)
	}
	return nil
}
