package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
)

// A server that loses touch with Redis at the worst moment: while the commit before a tool is
// under way, every answer of Redis to it is held back, or it is suspended, for longer than its
// lease. Another server takes its run over meanwhile. When it is back it must not begin the
// tool. make stale plays STALES of these trials and prints the table of docs/durability.md; in
// CI there are a few of each kind.

// staleTrials in CI, of each kind; make stale sets another number of trials in all.
const staleTrials = 1

// staleKind is a kind of trial.
type staleKind struct {
	effect    string
	suspended bool
	lease     time.Duration
}

// staleKinds returns all kinds with a lease.
func staleKinds(lease time.Duration) []staleKind {
	var kinds []staleKind
	for _, suspended := range []bool{false, true} {
		for _, effect := range []string{"once", "query", "idempotent"} {
			kinds = append(kinds, staleKind{effect, suspended, lease})
		}
	}
	return kinds
}

// oneWay is how long anything takes to a suspended server or from it: so there is a commit that
// has landed and whose answer has not.
const oneWay = 100 * time.Millisecond

func (k staleKind) String() string {
	if k.suspended {
		return fmt.Sprintf("suspended, %s one way", oneWay)
	}
	return "answers held back"
}

// TestStaleOwner: a server that was taken over begins no tool after that.
func TestStaleOwner(t *testing.T) {
	t.Parallel()
	kinds := staleKinds(time.Second)
	n := len(kinds) * staleTrials
	seed := rand.Uint64()
	if text := os.Getenv("HOLDFAST_STALES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		if seed, err = strconv.ParseUint(os.Getenv("HOLDFAST_STALES_SEED"), 10, 64); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, staleKinds(3*time.Second)...)
	}
	t.Logf("seed %d", seed)
	url := redistest.Start(t).URL()
	results := make([]staleResult, n)
	t.Run("trials", func(t *testing.T) {
		for i := range n {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				results[i] = staleTrial(t, url, kinds[i%len(kinds)], random)
			})
		}
	})
	for _, row := range staleTable(kinds, results) {
		t.Log(row)
	}
}

// staleResult is what came of a trial.
type staleResult struct {
	takenOver bool
	late      int // tools that the former owner began after that
	starts    int
}

// staleTable returns the table of docs/durability.md.
func staleTable(kinds []staleKind, results []staleResult) []string {
	table := []string{
		"| lease | the owner is | effect | trials | taken over | begun by the former owner afterwards | begun twice |",
		"|---|---|---|---|---|---|---|",
	}
	for i, k := range kinds {
		var trials, over, late, twice int
		for j := i; j < len(results); j += len(kinds) {
			r := results[j]
			trials++
			late += r.late
			if r.takenOver {
				over++
			}
			if r.starts > 1 {
				twice++
			}
		}
		table = append(table, fmt.Sprintf("| %s | %s | `%s` | %d | %d | %d | %d |", k.lease, k, k.effect, trials, over,
			late, twice))
	}
	return table
}

// staleTrial plays one trial.
func staleTrial(t *testing.T, url string, k staleKind, random *rand.Rand) staleResult {
	s := newStaleScene(t, url, k)
	away := time.Duration((1.5 + 0.7*random.Float64()) * float64(k.lease))
	delay := time.Duration(random.Float64() * float64(3*oneWay))
	var gone sync.WaitGroup
	s.onAnswer = func() {
		if !k.suspended {
			s.link.hold()
		}
		gone.Go(func() {
			if k.suspended {
				wait.Pass(delay)
				s.signal(syscall.SIGSTOP)
			}
			wait.Pass(away)
			if k.suspended {
				s.signal(syscall.SIGCONT)
			}
			s.link.release()
		})
	}
	res, err := post(t.Context(), s.former.url+"/agents/late", input("t", "r1", userMessage("u1", k.effect)))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	s.await(func(seen []sighting) bool {
		ended := func(process string) bool {
			return slices.ContainsFunc(seen, func(s sighting) bool {
				return s.process == process && strings.HasPrefix(s.what, "end ")
			})
		}
		return ended("former") && (ended("next") || slices.Contains(seen, sighting{"former", "end success"}))
	})
	gone.Wait()
	var r staleResult
	for _, seen := range s.all() {
		switch {
		case seen == sighting{"next", "takeover taken_over"}:
			r.takenOver = true
		case seen.what == "start" && seen.process == "former" && r.takenOver:
			r.late++
			r.starts++
		case seen.what == "start":
			r.starts++
		}
	}
	if r.late > 0 || k.effect != "idempotent" && r.starts > 1 {
		t.Errorf("%s, %s, lease %s: the tool was begun after the takeover, or twice: %v", k, k.effect, k.lease, s.all())
	}
	return r
}

// sighting is something that a server has told.
type sighting struct{ process, what string }

// staleScene is two servers on one Redis, of which the former owner is behind a link.
type staleScene struct {
	*testing.T
	link         *redisLink
	former, next *process
	onAnswer     func()

	mu    sync.Mutex
	seen  []sighting
	grown chan struct{}
}

func newStaleScene(t *testing.T, url string, k staleKind) *staleScene {
	t.Helper()
	s := &staleScene{T: t, grown: make(chan struct{})}
	witness := httptest.NewServer(http.HandlerFunc(s.hear))
	t.Cleanup(witness.Close)
	var delay time.Duration
	if k.suspended {
		delay = oneWay
	}
	s.link = newRedisLink(t, strings.TrimPrefix(url, "redis://"), delay)
	prefix := "hf" + strings.ReplaceAll(t.Name(), "/", "-") + ":"
	worker := func(name, store string) *process {
		return launch(t, workerBinary, redistest.FreeAddr(t), store, "--redis-prefix="+prefix,
			"--lease="+k.lease.String(), "--name="+name, "--journal="+t.TempDir()+"/journal", "--witness="+witness.URL)
	}
	s.former, s.next = worker("former", "redis://"+s.link.addr), worker("next", url)
	s.former.ready()
	s.next.ready()
	return s
}

// signal sends the former owner a signal.
func (s *staleScene) signal(sig syscall.Signal) {
	if err := s.former.cmd.Process.Signal(sig); err != nil {
		s.Error(err)
	}
}

// hear hears what a server tells.
func (s *staleScene) hear(w http.ResponseWriter, r *http.Request) {
	now := sighting{r.FormValue("process"), r.FormValue("what")}
	s.mu.Lock()
	defer s.mu.Unlock()
	begun := slices.ContainsFunc(s.seen, func(s sighting) bool { return s.what == "start" })
	if now.what == "look" && !begun {
		w.WriteHeader(http.StatusNotFound)
	}
	if now == (sighting{"former", "answered"}) {
		s.onAnswer()
	}
	s.seen = append(s.seen, now)
	close(s.grown)
	s.grown = make(chan struct{})
}

// all returns what the servers have told.
func (s *staleScene) all() []sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// await waits until the servers have told what is looked for.
func (s *staleScene) await(found func([]sighting) bool) {
	s.Helper()
	late := time.After(patience)
	for {
		s.mu.Lock()
		seen, grown := slices.Clone(s.seen), s.grown
		s.mu.Unlock()
		if found(seen) {
			return
		}
		select {
		case <-grown:
		case <-late:
			s.Fatalf("the run does not end: %v\n%s\n%s", seen, s.former.out, s.next.out)
		}
	}
}

// redisLink is the network between a server and Redis: slow, and able to hold answers back.
type redisLink struct {
	addr  string
	delay time.Duration // one way
	ctx   context.Context

	mu    sync.Mutex
	open  chan struct{} // closed while answers pass
	last  net.Conn      // the connection whose answers are the last to pass
	later time.Time     // until then no answer passes that was not held back
}

func newRedisLink(t *testing.T, to string, delay time.Duration) *redisLink {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	link := &redisLink{addr: l.Addr().String(), delay: delay, ctx: ctx, open: make(chan struct{})}
	close(link.open)
	var running sync.WaitGroup
	t.Cleanup(func() { stop(); l.Close(); running.Wait() })
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { link.carry(client, to) })
		}
	})
	return link
}

// hold holds all answers back, until release.
func (l *redisLink) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open, l.last = make(chan struct{}), nil
}

func (l *redisLink) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.open:
	default:
		close(l.open)
		l.later = time.Now().Add(jam)
	}
}

// jam is how long after what was held back nothing else passes, as on a link that was full.
const jam = 100 * time.Millisecond

// due returns when an answer arrives that Redis gives now.
func (l *redisLink) due() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := time.Now().Add(l.delay); at.After(l.later) {
		return at
	}
	return l.later
}

// large is more bytes than any request of a server has that is not a commit.
const large = 600

// asked notes a request. Of all that are under way while answers are held back, the answer to
// the first commit comes last: what the others say about the time is known by then.
func (l *redisLink) asked(client net.Conn, size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.open:
	default:
		if l.last == nil && size >= large {
			l.last = client
		}
	}
}

// passes waits until an answer passes; it returns false when the test is over.
func (l *redisLink) passes(client net.Conn) bool {
	l.mu.Lock()
	open := l.open
	l.mu.Unlock()
	select {
	case <-open:
		return true
	default:
	}
	select {
	case <-open:
	case <-l.ctx.Done():
		return false
	}
	l.mu.Lock()
	last := l.last == client
	l.mu.Unlock()
	if last {
		wait.Pass(5 * time.Millisecond)
	}
	return true
}

// carry carries one connection.
func (l *redisLink) carry(client net.Conn, to string) {
	server, err := net.Dial("tcp", to)
	if err != nil {
		client.Close()
		return
	}
	stop := context.AfterFunc(l.ctx, func() { client.Close(); server.Close() })
	defer stop()
	var asking sync.WaitGroup
	asking.Go(func() {
		pass(server, client, func() time.Time { return time.Now().Add(l.delay) }, func(size int) bool {
			l.asked(client, size)
			return true
		})
	})
	pass(client, server, l.due, func(int) bool { return l.passes(client) })
	asking.Wait()
}

// parcel is what is under way in one direction, and when it arrives.
type parcel struct {
	data []byte
	at   time.Time
}

// pass passes on what is sent in one direction, each part of it when it is due and may pass.
func pass(to io.WriteCloser, from io.Reader, due func() time.Time, may func(size int) bool) {
	sent := make(chan parcel, 1<<12)
	var delivery sync.WaitGroup
	delivery.Go(func() {
		defer to.Close()
		broken := false
		for p := range sent {
			wait.Pass(time.Until(p.at))
			if !broken && may(len(p.data)) {
				_, err := to.Write(p.data)
				broken = err != nil
			}
		}
	})
	for {
		data := make([]byte, 32<<10)
		n, err := from.Read(data)
		if n > 0 {
			sent <- parcel{data[:n], due()}
		}
		if err != nil {
			break
		}
	}
	close(sent)
	delivery.Wait()
}
