package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/store"
)

// Fairness: how long the commits of one tenant take while another tenant sends the largest
// requests that the server accepts. A server of its own process reports each commit of the
// tenant that is measured; nothing is pinned to a CPU, because the loud tenant takes its
// share of whatever there is.

// The two tenants, by the header that names them.
const (
	tenantHeader = "Tenant"
	tenantQuiet  = "quiet"
	tenantLoud   = "loud"
)

// What the bars are: the 99th percentile is at most fairTimes what it is without the loud
// tenant, or fairFloor if that is more, and no commit takes longer than fairLongest.
const (
	fairTimes   = 3
	fairFloor   = 50 * time.Millisecond
	fairLongest = 500 * time.Millisecond
)

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
	fs.IntVar(
		&f.commits,
		"commits",
		1500,
		"with -fairness: how many commits of the quiet tenant are measured, without and with the loud one",
	)
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
		return fmt.Sprintf(
			`{"threadId":"loud-%x-%d","runId":"r","messages":[%s]%s}`,
			len(more)+len(messages),
			n,
			messages,
			more,
		)
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
	dir, err := os.MkdirTemp("", "holdfast-fairness-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// Not on a processor of its own: what rewrites its file would share that with it.
	redis, err := startRedisWith("everysec")
	if err != nil {
		return err
	}
	defer redis.stop()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var missed []string
	for _, name := range []string{"embedded", "Redis"} {
		for n, s := range shapes() {
			if !strings.HasPrefix(name+" "+s.name, f.only) {
				continue
			}
			store := redis.url()
			if name == "embedded" {
				store = "file:" + filepath.Join(dir, strconv.Itoa(n))
			}
			m, err := f.measure(self, store, s)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", name, s.name, err)
			}
			fmt.Printf("| %s | %s | %s |\n", name, s.name, m)
			if name == "Redis" {
				if err := redis.sayRewrites(); err != nil {
					return err
				}
			}
			if !m.fair() {
				missed = append(missed, name+" with "+s.name)
			}
		}
	}
	if len(missed) > 0 {
		return errors.New("missed: " + strings.Join(missed, "; "))
	}
	return nil
}

// sayRewrites prints what Redis does besides, on the same processors: it rewrites its
// append-only file, and stands still while it forks for that.
func (s *redisServer) sayRewrites() error {
	n, fork, err := s.rewrites()
	if err == nil {
		fmt.Printf(
			"(Redis has rewritten its append-only file %d times so far, and stood still for %.1f "+
				"ms when it forked last)\n",
			n,
			ms(fork),
		)
	}
	return err
}

// fairMeasure is how long the quiet tenant's commits took.
type fairMeasure struct {
	quiet, beside []time.Duration
	loud          int64 // requests of the loud tenant that were accepted meanwhile
	refused       int64 // and those that were not
}

func (m *fairMeasure) fair() bool {
	bar := max(fairFloor, fairTimes*percentile(m.quiet, 99))
	return percentile(m.beside, 99) <= bar && slices.Max(m.beside) <= fairLongest
}

// String is a row of the table in docs/benchmarks.md.
func (m *fairMeasure) String() string {
	row := func(d []time.Duration) string {
		return fmt.Sprintf("%.1f / %.1f / %.1f ms", ms(percentile(d, 50)), ms(percentile(d, 99)), ms(slices.Max(d)))
	}
	verdict := "ok"
	if !m.fair() {
		verdict = "MISSED"
	}
	return fmt.Sprintf("%s | %s | %d (%d refused) | %s", row(m.quiet), row(m.beside), m.loud, m.refused, verdict)
}

// measure starts a server and measures it.
func (f *fairness) measure(self, store string, s shape) (*fairMeasure, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	p, err := start("http://"+addr, nil, []string{self, "-serve", "fairness", "-addr", addr, "-store", store})
	if err != nil {
		return nil, err
	}
	defer p.stop()
	m, err := f.against(p.url, s)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, p.out.String())
	}
	return m, nil
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
				code, err := post(ctx, url, tenantLoud, s.body(int(next.Add(1))))
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
		var wg sync.WaitGroup
		failures := make([]error, 4)
		for i := range failures {
			wg.Go(func() {
				body := fmt.Sprintf(
					`{"threadId":"%s-%d-%d","runId":"r","messages":[{"id":"u","role":"user","content":"hello"}]}`,
					part,
					n,
					i,
				)
				code, err := post(context.Background(), url, tenantQuiet, body)
				if err == nil && code != http.StatusOK {
					err = fmt.Errorf("the quiet tenant was answered with %d", code)
				}
				failures[i] = err
			})
		}
		wg.Wait()
		more, err := commitsOf(url)
		if err := errors.Join(append(failures, err)...); err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// post makes a run and reads its stream to the end.
func post(ctx context.Context, url, tenant, body string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/runs", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(tenantHeader, tenant)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
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
	cfg := server.Config{
		Store:       storeURL,
		Log:         slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		MultiTenant: func() bool { return true },
		Agents:      []holdfast.Agent{{Name: "words", Model: holdfast.ModelFunc(words)}},
		Authenticate: func(r *http.Request) (holdfast.Principal, error) {
			return holdfast.Principal{Tenant: r.Header.Get(tenantHeader), User: "user"}, nil
		},
		Observer: observe.Observer{Committed: func(_ holdfast.Iteration, c *store.Commit, d time.Duration, err error) {
			if c.Key.Tenant == tenantQuiet {
				mu.Lock()
				took = append(took, d)
				mu.Unlock()
			}
		}},
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
