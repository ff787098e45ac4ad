package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/store"
)

// Fairness: how long the commits of one tenant take while another tenant sends the largest
// requests that the server accepts. The server reports each commit of the tenant that is
// measured; nothing is pinned to a CPU, because the loud tenant takes its share of whatever
// there is.

// fairLongest is what no commit takes longer than.
const fairLongest = 500 * time.Millisecond

// fairness is the load.
type fairness struct {
	commits int           // of the quiet tenant, at least, in each phase
	lasts   time.Duration // of each phase, at least
	clients int           // of the loud tenant
	enough  int64         // requests of the loud tenant that are accepted, at least
	only    string        // the beginning of the name of a row, to measure only that
}

// flags declares what can be changed.
func (f *fairness) flags(fs *flag.FlagSet) {
	fs.IntVar(&f.commits, "commits", 1500,
		"with -fairness: how many commits of the quiet tenant are measured, without and with the loud one")
	f.enough = 1
	fs.DurationVar(&f.lasts, "lasts", 15*time.Second, "with -fairness: how long each phase lasts, at least")
	fs.IntVar(&f.clients, "loud", 8, "with -fairness: how many requests of the loud tenant are under way at a time")
}

// The largest requests: a body of 4 MiB and 10,000 messages.
const (
	largestBody     = 4<<20 - 4096
	largestMessages = 10_000
)

// shape is one kind of largest request; body returns the nth.
type shape struct {
	name string
	body func(n int) string
}

// shapes are the kinds of largest requests.
func shapes() []shape {
	long := make([]string, largestMessages)
	for i := range long {
		long[i] = prose(largestBody/largestMessages - 60)
	}
	var list strings.Builder
	for i := range largestMessages {
		role := "user"
		if i%2 == 1 && i < largestMessages-1 {
			role = "assistant"
		}
		fmt.Fprintf(&list, `,{"id":"m%d","role":%q,"content":%q}`, i, role, long[i])
	}
	messages, text := list.String()[1:], prose(largestBody)
	request := func(n int, messages, more string) string {
		return fmt.Sprintf(`{"threadId":"loud-%x-%d","runId":"r","messages":[%s]%s}`, len(more)+len(messages), n,
			messages, more)
	}
	return []shape{
		{"10,000 messages", func(n int) string { return request(n, messages, "") }},
		{
			"one message of 4 MB",
			func(n int) string { return request(n, fmt.Sprintf(`{"id":"u","role":"user","content":%q}`, text), "") },
		},
		{"a shared state of 4 MB", func(n int) string {
			return request(n, `{"id":"u","role":"user","content":"go"}`, fmt.Sprintf(`,"state":{"text":%q}`, text))
		}},
	}
}

// prose returns about n bytes of text that can be compressed as far as real text can.
func prose(n int) string {
	var b strings.Builder
	for b.Len() < n-16 {
		b.WriteString(strconv.FormatUint(rand.Uint64N(1<<20), 36))
		b.WriteByte(' ')
	}
	return b.String()
}

// run measures every shape on both stores.
func (f *fairness) run() error {
	// Not on a processor of its own: what rewrites its file would share that with it.
	redis, err := startRedisWith("everysec")
	if err != nil {
		return err
	}
	defer redis.stop()
	all := shapes()
	var names []string
	for _, s := range all {
		names = append(names, s.name)
	}
	return onBothStores("fairness", f.only, redis, names, func(p *process, n int) (measure, error) {
		m, err := f.against(p.url, all[n])
		return m, errors.Join(err, redis.sayRewrites())
	})
}

// sayRewrites prints what Redis does besides, on the same processors: it rewrites its
// append-only file, and stands still while it forks for that.
func (s *redisServer) sayRewrites() error {
	figures, err := s.info("persistence", "stats")
	fmt.Printf("(Redis has rewritten its append-only file %.0f times so far, and stood still for %.1f "+
		"ms when it forked last)\n", figures["aof_rewrites"], figures["latest_fork_usec"]/1000)
	return err
}

// fairMeasure is how long the quiet tenant's commits took.
type fairMeasure struct {
	quiet, beside []time.Duration
	loud          int64 // requests of the loud tenant that were accepted meanwhile
	refused       int64 // and those that were not
}

func (m *fairMeasure) held() bool {
	return fair(m.quiet, m.beside) && slices.Max(m.beside) <= fairLongest
}

// String is a row of the table in docs/benchmarks.md.
func (m *fairMeasure) String() string {
	return fmt.Sprintf("%s | %s | %d (%d refused) | %s", spread(m.quiet), spread(m.beside), m.loud, m.refused,
		verdict(m.held()))
}

// against measures the quiet tenant alone, and then beside the loud one.
func (f *fairness) against(url string, s shape) (m *fairMeasure, err error) {
	m = &fairMeasure{}
	if m.quiet, err = f.quiet(url, s.name+" alone", func() bool { return true }); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var next, accepted, refused atomic.Int64
	for range f.clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				code, _, err := post(ctx, url, tenantLoud, s.body(int(next.Add(1))))
				switch {
				case err != nil:
				case code == http.StatusOK:
					accepted.Add(1)
				default:
					refused.Add(1)
					time.Sleep(50 * time.Millisecond)
				}
			}
		})
	}
	m.beside, err = f.quiet(url, s.name+" beside", func() bool { return accepted.Load() >= f.enough })
	stop()
	wg.Wait()
	if err != nil {
		return nil, err
	}
	m.loud, m.refused = accepted.Load(), refused.Load()
	if m.loud == 0 {
		return nil, errors.New("no request of the loud tenant was accepted")
	}
	return m, nil
}

// quiet makes runs of the quiet tenant until there are enough commits and enough reports
// true, and returns how long the commits took.
func (f *fairness) quiet(url, part string, enough func() bool) ([]time.Duration, error) {
	if _, err := commitsOf(url); err != nil { // what was before
		return nil, err
	}
	var all []time.Duration
	for n, begun := 0, time.Now(); len(all) < f.commits || time.Since(begun) < f.lasts || !enough(); n++ {
		_, err := fourRuns(url, part, n)
		more, err2 := commitsOf(url)
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// commitsOf takes from the server how long the quiet tenant's commits took since it was
// asked last.
func commitsOf(url string) ([]time.Duration, error) {
	res, err := http.Get(url + "/commits")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var list []time.Duration
	return list, json.NewDecoder(res.Body).Decode(&list)
}

// serveFair serves what is measured.
func serveFair(addr, storeURL string) error {
	s, h, err := fairServer(storeURL, func(*server.Config) {})
	if err != nil {
		return err
	}
	if err := s.StartEngine(context.Background()); err != nil {
		return err
	}
	return http.ListenAndServe(addr, h)
}

// fairServer returns the server that is measured: it believes the header about the tenant,
// and says at /commits how long those of the quiet one took.
func fairServer(storeURL string, change func(*server.Config)) (*server.Server, http.Handler, error) {
	var mu sync.Mutex
	var took []time.Duration
	cfg := tenantsServer(storeURL, holdfast.Agent{Name: "words", Model: holdfast.ModelFunc(words)})
	cfg.Observer.Committed = func(_ holdfast.Iteration, c *store.Commit, d time.Duration, err error) {
		if c.Key.Tenant == tenantQuiet {
			mu.Lock()
			took = append(took, d)
			mu.Unlock()
		}
	}
	change(&cfg)
	s, err := server.New(cfg)
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", s.Handler())
	mux.HandleFunc("GET /commits", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		list := took
		took = []time.Duration{}
		mu.Unlock()
		_ = json.NewEncoder(w).Encode(list)
	})
	return s, mux, nil
}

// words answers with a few words, 2 ms apart.
func words(ctx context.Context, _ *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		for n := range 20 {
			select {
			case <-ctx.Done():
				yield(holdfast.Delta{}, ctx.Err())
				return
			case <-time.After(2 * time.Millisecond):
			}
			if !yield(holdfast.Delta{Text: "word" + strconv.Itoa(n) + " "}, nil) {
				return
			}
		}
		yield(holdfast.Delta{Finish: holdfast.FinishStop}, nil)
	}
}
