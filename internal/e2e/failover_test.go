package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/redisstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
	"github.com/holdfast-agents/holdfast/store"
)

// Redis's primary dies, often with replicas that lag behind, and a replica takes its place.
// Three servers run and show runs meanwhile. With --durability=failover nothing that anybody
// has seen may be missing afterwards. Without it some is, which shows that the campaign can
// tell; but then nobody is left with what is not so: a watcher that has seen something that is
// gone has to start over. make failover plays all of it and prints the table of
// docs/durability.md.

// failovers in CI, of each kind; make failover sets another number.
const failovers = 1

// redisGroup is Redis with replicas, in one of the two forms.
type redisGroup struct {
	*testing.T
	url      string
	servers  []*redistest.Server
	sentinel *redistest.Sentinels // nil in a cluster
}

// newSentinelGroup starts a primary, two replicas and three sentinels.
func newSentinelGroup(t *testing.T) *redisGroup {
	primary, replicas := redistest.StartReplicas(t, 2, "--appendonly", "yes", "--appendfsync", "everysec")
	s := redistest.StartSentinels(t, primary, 1000)
	g := &redisGroup{T: t, url: s.URL, servers: append(replicas, primary), sentinel: s}
	s.AwaitReady(t, 2)
	return g
}

// newClusterGroup starts a cluster of three primaries with a replica each.
func newClusterGroup(t *testing.T) *redisGroup {
	nodes, replicas := redistest.StartClusterOf(t, 3)
	return &redisGroup{
		T:       t,
		url:     "redis+cluster://" + nodes[0].Addr + "?addr=" + nodes[1].Addr + "&addr=" + replicas[2].Addr,
		servers: append(nodes, replicas...),
	}
}

// primary returns a primary and its replicas: in a cluster any, or there is but one.
func (g *redisGroup) primary(random *rand.Rand) (primary *redistest.Server, replicas []*redistest.Server) {
	g.Helper()
	var primaries []*redistest.Server
	for _, s := range g.servers {
		if s.Role() == "master" && (g.sentinel == nil || g.sentinel.Primary() == s.Addr) {
			primaries = append(primaries, s)
		}
	}
	if len(primaries) == 0 {
		g.Fatal("there is no primary")
	}
	primary = primaries[random.IntN(len(primaries))]
	for _, s := range g.servers {
		if s.PrimaryPort() == primary.Port() {
			replicas = append(replicas, s)
		}
	}
	return primary, replicas
}

// failOver kills a primary, or in one of three cases suspends it, whose replicas have been cut off
// for so long before. When one of them has taken its place, the dead one comes back as a replica,
// and the suspended one goes on.
func (g *redisGroup) failOver(random *rand.Rand, stalled time.Duration) {
	g.Helper()
	primary, replicas := g.primary(random)
	if stalled > 0 {
		for _, r := range replicas {
			r.Suspend(g.T)
		}
		// Data on its way to them would reach them when they go on.
		primary.Command(g.T, "client", "kill", "type", "replica")
		wait.Pass(stalled)
	}
	frozen := random.IntN(3) == 0
	if frozen {
		primary.Suspend(g.T)
	} else {
		primary.Kill(g.T)
	}
	for _, r := range replicas {
		r.Resume(g.T)
	}
	killed := time.Now()
	redistest.Await(g.T, func() error {
		if g.sentinel != nil && time.Since(killed) > 10*time.Second {
			g.sentinel.Urge() // a busy machine keeps them from agreeing
		}
		for _, r := range replicas {
			if r.Role() == "master" && (g.sentinel == nil || g.sentinel.Primary() == r.Addr) {
				primary.Follow(g.T, r)
				return nil
			}
		}
		return errors.New("no replica has taken the primary's place")
	})
	if frozen { // it goes on as the primary that it was, until it is told
		primary.Resume(g.T)
		wait.Pass(time.Duration(100+random.IntN(300)) * time.Millisecond)
	} else {
		primary.Run(g.T)
	}
	g.settle()
}

// settle waits until everybody follows the new primary.
func (g *redisGroup) settle() {
	g.Helper()
	if g.sentinel == nil {
		for _, s := range g.servers {
			redistest.Await(g.T, func() error {
				if s.Role() == "master" {
					return s.HasReplicas(1)
				}
				return nil
			})
		}
		return
	}
	redistest.Await(g.T, func() error {
		at := g.sentinel.Primary()
		for _, s := range g.servers {
			if s.Addr != at {
				continue
			}
			for _, r := range g.servers { // Sentinel tells them too, but after seconds those that were suspended
				if r != s && r.PrimaryPort() != s.Port() {
					r.Follow(g.T, s)
					r.FollowNow(s)
				}
			}
			return s.HasReplicas(2)
		}
		return errors.New("the sentinels do not agree")
	})
	g.sentinel.AwaitReady(g.T, 2)
}

// campaign is a group of servers on such a Redis.
type campaign struct {
	*fleet
	redis  *redisGroup
	random *rand.Rand
	level  string
	tally
}

// tally is what came of the trials.
type tally struct {
	trials, seen, lost, losses, resynced, charges, repeated int
}

func (c tally) row(what string) string {
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d | %d |", what, c.trials, c.seen, c.lost, c.losses,
		c.resynced, c.charges, c.repeated)
}

// newCampaign starts the servers at a level of durability.
func newCampaign(t *testing.T, g *redisGroup, level string, seed int) *campaign {
	g.T = t
	prefix := fmt.Sprintf("%s-%d:", strings.ReplaceAll(level, ":", "-"), seed)
	f := &fleet{T: t, store: g.url, lease: time.Second}
	f.args = []string{
		"--lease=1s",
		"--demo-delay=10ms",
		"--archive-after=1h",
		"--durability=" + level,
		"--redis-prefix=" + prefix,
	}
	for i := range 3 {
		f.addrs = append(f.addrs, redistest.FreeAddr(t))
		f.journals = append(f.journals, filepath.Join(t.TempDir(), fmt.Sprint("journal", i)))
		f.servers = append(f.servers, nil)
		f.start(i)
	}
	return &campaign{fleet: f, redis: g, random: rand.New(rand.NewPCG(uint64(seed), 0)), level: level}
}

// audience is somebody who follows a run at one server, and comes back with the last cursor
// whenever the stream ends.
type audience struct {
	seen     []store.Cursor
	restarts []int // how much was seen when the stream started over
	ended    bool
}

// follow follows a run until it ends, or ctx does.
func (c *campaign) follow(ctx context.Context, at, thread string, a *audience) {
	cursor := ""
	for ctx.Err() == nil && !a.ended {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/threads/"+thread+"/runs/r1/events", nil)
		if err != nil {
			return
		}
		if cursor != "" {
			req.Header.Set("Last-Event-ID", cursor)
		}
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			switch {
			case res.StatusCode == http.StatusNoContent:
				a.ended = true
			case res.StatusCode == http.StatusNotFound && cursor != "": // the whole thread is gone
				a.restarts = append(a.restarts, len(a.seen))
				a.ended = true
			}
			// How the stream ends is seen in what it has said.
			_ = readStream(res.Body, func(r record) bool {
				at, err := store.ParseCursor(r.ID)
				switch {
				case err != nil || r.ID == "":
					if r.kind() == "RUN_STARTED" {
						a.restarts = append(a.restarts, len(a.seen))
					}
					a.ended = a.ended ||
						len(a.restarts) > 0 &&
							(r.kind() == "RUN_FINISHED" ||
								r.kind() == "RUN_ERROR" && r.Data["code"] != "stream_cut" &&
									r.Data["code"] != "store_unavailable")
				default:
					a.seen = append(a.seen, at)
					cursor = r.ID
					a.ended = r.kind() == "RUN_FINISHED" || r.kind() == "RUN_ERROR"
				}
				return a.ended
			})
			res.Body.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// trial is one failover under two runs, each of which three others follow.
func (c *campaign) trial(i int) {
	c.Helper()
	ctx, stop := context.WithTimeout(c.Context(), 3*time.Minute)
	defer stop()
	threads := []string{fmt.Sprintf("plan%d", i), fmt.Sprintf("shop%d", i)}
	everybody := map[string][]*audience{}
	var following sync.WaitGroup
	for n, thread := range threads {
		c.begin(thread, (i+n)%3, []string{"plan 2000 steps", "charge 300"}[n])
		for _, s := range c.servers {
			a := &audience{}
			everybody[thread] = append(everybody[thread], a)
			following.Go(func() { c.follow(ctx, s.url, thread, a) })
		}
	}
	wait.Pass(time.Duration(200+c.random.IntN(300)) * time.Millisecond)
	stalled := time.Duration(0)
	if c.random.IntN(4) > 0 { // one in four dies without any delay
		stalled = time.Duration(50+c.random.IntN(350)) * time.Millisecond
	}
	c.redis.failOver(c.random, stalled)
	wait.Pass(time.Duration(100+c.random.IntN(300)) * time.Millisecond)
	for _, thread := range threads {
		c.end(ctx, thread)
	}
	following.Wait()
	for _, thread := range threads {
		c.judge(thread, everybody[thread])
	}
	c.trials++
}

// end cancels a run, until a server says that it is over, or that there is none.
func (c *campaign) end(ctx context.Context, thread string) {
	c.Helper()
	url := c.servers[0].url + "/threads/" + thread + "/runs/r1/cancel"
	wait.For(c.T, func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
		if err != nil {
			c.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		res.Body.Close()
		if res.StatusCode < 300 || res.StatusCode == http.StatusConflict || res.StatusCode == http.StatusNotFound {
			return nil
		}
		return errors.New(res.Status)
	})
}

// judge compares what was seen with the log that is left.
func (c *campaign) judge(thread string, everybody []*audience) {
	c.Helper()
	left := c.log(thread)
	missing := 0
	for n, a := range everybody {
		c.seen += len(a.seen)
		c.resynced += len(a.restarts)
		if !a.ended && len(left) > 0 {
			c.Errorf("%s: who watches at server %d has not seen the end: %d records, started over at %v\n%s", thread,
				n, len(a.seen), a.restarts, lastLines(c.servers[n].out.String(), 12))
		}
		for k, s := range a.seen {
			if left[s] {
				continue
			}
			missing++
			if !slices.ContainsFunc(a.restarts, func(at int) bool { return at > k }) && a.ended {
				c.Errorf("%s: record %s, seen at server %d, is not in the log, and nobody said so", thread, s, n)
			}
		}
	}
	c.lost += missing
	if missing > 0 {
		c.losses++
	}
}

// log returns the records that are left of a thread.
func (c *campaign) log(thread string) map[store.Cursor]bool {
	c.Helper()
	prefix := ""
	for _, a := range c.args {
		if p, ok := strings.CutPrefix(a, "--redis-prefix="); ok {
			prefix = p
		}
	}
	s, err := redisstore.Open(c.Context(), c.store, redisstore.Options{Prefix: prefix})
	if err != nil {
		c.Fatal(err)
	}
	defer s.Close()
	all := map[store.Cursor]bool{}
	redistest.Await(c.T, func() error {
		records, err := s.Records(c.Context(), store.ThreadKey{Tenant: "default", Thread: thread}, store.Cursor{},
			1<<20)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		for _, r := range records {
			all[r.Cursor] = true
		}
		return err
	})
	return all
}

// effects counts what was charged, and what was charged more than once.
func (c *campaign) effects() {
	c.Helper()
	charged := map[string]int{}
	for _, name := range c.journals {
		text, err := os.ReadFile(name)
		if err != nil {
			c.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "charge ") {
				charged[fields(line)["key"]]++
			}
		}
	}
	for _, n := range charged {
		c.charges++
		if n > 1 {
			c.repeated++
		}
	}
}

// TestFailovers plays the campaign: of so many failovers at level failover two thirds with
// Sentinel and the others in a cluster, and three in ten more as a control.
func TestFailovers(t *testing.T) {
	t.Parallel()
	n, seed := setting(t, "HOLDFAST_FAILOVERS", failovers), setting(t, "HOLDFAST_FAILOVERS_SEED", os.Getpid())
	plays := []play{{"Cluster, `failover`", newClusterGroup, "failover", n}}
	if os.Getenv("HOLDFAST_FAILOVERS") != "" {
		plays = []play{
			{"Sentinel and two replicas, `failover:2`", newSentinelGroup, "failover:2", (n + 2) / 3},
			{"Sentinel and two replicas, `failover:2`", newSentinelGroup, "failover:2", (n + 1) / 3},
			{"Cluster with a replica each, `failover`", newClusterGroup, "failover", (n + 2) / 3},
			{"Sentinel and two replicas, `failover`: one of them is enough", newSentinelGroup, "failover", (n + 4) / 5},
			{"Sentinel and two replicas, `store`: the control", newSentinelGroup, "store", (n + 4) / 5},
			{"Cluster with a replica each, `store`: the control", newClusterGroup, "store", (n + 9) / 10},
		}
	}
	all := map[string]*tally{}
	var mu sync.Mutex
	t.Run("Play", func(t *testing.T) {
		for i, p := range plays {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				is := p.run(t, seed+i)
				mu.Lock()
				defer mu.Unlock()
				if all[p.what] == nil {
					all[p.what] = &tally{}
				}
				all[p.what].add(is)
			})
		}
	})
	table := []string{
		"| Redis, and `--durability` | failovers | records seen | of them lost | runs with losses | streams that " +
			"started over | charges | charged twice |",
		"|---|---|---|---|---|---|---|---|",
	}
	lost := 0
	for _, p := range plays {
		is := all[p.what]
		if is == nil {
			continue
		}
		if p.level == "store" {
			lost += is.lost
		}
		table = append(table, is.row(p.what))
		delete(all, p.what)
	}
	if len(plays) > 1 && lost == 0 {
		t.Error("the control has lost nothing, so the campaign cannot tell")
	}
	t.Logf("seed %d\n%s", seed, strings.Join(table, "\n"))
}

// play is a part of the campaign.
type play struct {
	what  string
	start func(*testing.T) *redisGroup
	level string
	n     int
}

// safe reports whether nothing may be lost: every replica that can take the primary's place has
// what was acknowledged. With one of two it depends on which of them Sentinel chooses.
func (p play) safe() bool {
	return p.level != "store" && !strings.HasSuffix(p.what, "one of them is enough")
}

// run plays it.
func (p play) run(t *testing.T, seed int) tally {
	c := newCampaign(t, p.start(t), p.level, seed)
	for i := range p.n {
		c.trial(i)
		if i%10 == 9 {
			t.Logf("%s: %+v", p.what, c.tally)
		}
		if t.Failed() {
			t.Fatalf("trial %d of seed %d", i, seed)
		}
	}
	c.effects()
	if p.safe() && (c.lost > 0 || c.resynced > 0 || c.repeated > 0) {
		t.Errorf("with --durability=%s: %+v, seed %d", p.level, c.tally, seed)
	}
	return c.tally
}

func (c *tally) add(d tally) {
	c.trials += d.trials
	c.seen += d.seen
	c.lost += d.lost
	c.losses += d.losses
	c.resynced += d.resynced
	c.charges += d.charges
	c.repeated += d.repeated
}
