package simulate

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/quota"
	"github.com/holdfast-agents/holdfast/internal/upkeep"
	"github.com/holdfast-agents/holdfast/store"
)

// The world before anything happens in it, as a seed says.

// maxRuns is how many runs a server has room for.
const maxRuns = 3

// aside begins the names of side runs' threads.
const aside = "aside-"

// moment passes before each step, so that no two timers of different steps are due at once: it divides
// none of the times that there are.
const moment = 10007 * time.Nanosecond

// variant is what tells one server's configuration from another's.
type variant struct {
	revision   string
	without    bool // it does not have the agent
	noRecover  bool
	onRevision string
}

func (v variant) String() string {
	switch {
	case v.without:
		return "without the agent"
	case v.noRecover:
		return "does not recover"
	case v.onRevision != "":
		return "revision " + v.revision + ", pinned"
	}
	return "revision " + v.revision
}

// plan is what a seed says.
type plan struct {
	seed                      uint64
	servers, threads, clients int
	steps                     int
	mood                      mood
	variants                  []variant
	skews                     []time.Duration
	legacy                    []bool
	texts                     []string
	extras                    extras
	retention                 upkeep.Retention
}

// extras are what happens in some schedules only, so that the others keep to few things.
type extras struct {
	outside  bool // tools whose calls are finished from outside
	page     bool // a tool of the client's page
	branches bool // edits, regenerations, and returns to other branches
	asides   bool // side runs
	upkeep   bool // descriptions, reloads, calls by hand, and looks at what there is
	keepers  bool // servers that archive, prune, delete, and go on with what is due; users who do too
	rewinds  bool // users who go back, after which calls are made again, as they ask for
	forks    bool // users who go on from a thread in another one
	results  bool // clients that want one result instead of a stream
	states   bool // the shared state, which tools and users change, and activities
	mistakes bool // servers that are taken for dead although they live
}

// extrasOf returns the extras of a seed: none for every second one.
func extrasOf(seed uint64) (x extras) {
	x.mistakes = rand.New(rand.NewPCG(seed, 0xdead)).IntN(4) == 0
	r := rand.New(rand.NewPCG(seed, 0xe87a))
	if r.IntN(2) == 0 {
		return x
	}
	for _, one := range []*bool{
		&x.outside, &x.page, &x.branches, &x.asides, &x.upkeep, &x.keepers, &x.rewinds, &x.forks, &x.results,
	} {
		*one = r.IntN(2) == 0
	}
	x.states = rand.New(rand.NewPCG(seed, 0x57a7)).IntN(2) == 0
	return x
}

// retentionOf returns what servers remove by themselves.
func retentionOf(seed uint64) (keep upkeep.Retention) {
	r := rand.New(rand.NewPCG(seed, 0xa6e5))
	if r.IntN(2) == 0 {
		keep.Checkpoints = time.Second
	}
	if r.IntN(3) == 0 {
		keep.PruneBytes = 4000
	}
	if r.IntN(4) == 0 {
		keep.Threads = 2 * time.Second
	}
	if r.IntN(2) == 0 { // otherwise the index has to find everything
		keep.Every = 830 * time.Millisecond
	}
	return keep
}

// tools returns the names of the tools that a user asks for.
func (x extras) tools() []string {
	names := slices.Clone(toolNames)
	if x.outside {
		names = append(names, "hand", "hand", "expire", "expire")
	}
	if x.page {
		names = append(names, "page", "page")
	}
	if x.states {
		names = append(names, "note", "note", "show", "show")
	}
	return names
}

// planOf returns the plan of a seed.
func planOf(seed uint64) *plan {
	r := rand.New(rand.NewPCG(seed, 0x91a4))
	p := &plan{
		seed:    seed,
		servers: 2,
		threads: 1,
		clients: 2,
		steps:   60 + r.IntN(140),
		mood:    moods[r.IntN(len(moods))],
	}
	if r.IntN(3) == 0 {
		p.servers += 1 + r.IntN(3)
	}
	if r.IntN(4) == 0 {
		p.threads, p.clients = 2, 3
	}
	for range p.servers {
		v := variant{revision: "r1"}
		if r.IntN(8) == 0 && len(p.variants) > 0 {
			v = odd(r)
		}
		p.variants = append(p.variants, v)
		skew := time.Duration(0)
		if r.IntN(4) == 0 {
			skew = time.Duration(r.IntN(7200)-3600) * time.Second
		}
		p.skews = append(p.skews, skew)
	}
	for range p.clients {
		p.legacy = append(p.legacy, r.IntN(3) == 0)
	}
	p.extras, p.retention = extrasOf(seed), retentionOf(seed)
	for range 4 {
		p.texts = append(p.texts, text(r, p.extras.tools()))
	}
	return p
}

// odd returns a configuration that differs from the others'.
func odd(r *rand.Rand) variant {
	switch r.IntN(5) {
	case 0:
		return variant{revision: "r1", without: true}
	case 1:
		return variant{revision: "r1", noRecover: true}
	case 2:
		return variant{revision: "r2", onRevision: "pin"}
	}
	return variant{revision: "r2"}
}

// text returns what a user asks for.
func text(r *rand.Rand, tools []string) string {
	var turns []string
	for range r.IntN(3) {
		var calls []string
		for range 1 + r.IntN(2) {
			calls = append(calls, tools[r.IntN(len(tools))])
		}
		turns = append(turns, strings.Join(calls, ","))
	}
	return "do " + strings.Join(append(turns, ""), "|")
}

func (p *plan) String() string {
	return fmt.Sprintf("seed %d: %d servers, %d threads, %d clients, %s", p.seed, p.servers, p.threads, p.clients,
		p.mood.name)
}

// ids returns the threads.
func (p *plan) ids() (ids []string) {
	for i := range p.threads {
		ids = append(ids, fmt.Sprintf("t%d", i+1))
	}
	return ids
}

// limits returns the limits of a server.
func (p *plan) limits(ledger store.Ledger, now clock.Shared, id func(string) string) *quota.Limiter {
	return quota.New(quota.Config{
		Limits:   quota.Limits{Pair: quota.Pair{PerUser: quota.Bounds{Runs: maxRuns, Threads: 1000}}},
		Ledger:   ledger,
		Now:      now,
		Log:      slog.New(slog.DiscardHandler),
		NewID:    id,
		Rejected: func(string, string) {},
	})
}

// The verdicts with which goroutines are let go. All that a seam offers besides "go" is a fault.
const (
	goOn   = "go"
	dead   = "dead"   // the server has been killed
	lost   = "lost"   // the request never arrives
	mute   = "mute"   // it is carried out, and the reply is lost
	late   = "late"   // it is carried out, and the reply is held back
	twice  = "twice"  // it is carried out twice
	broken = "broken" // the model's stream breaks off
	failed = "failed" // the tool or the model returns an error
	unsure = "unsure" // the tool cannot tell what became of its call
)

// mood is how likely faults are.
type mood struct {
	name string
	// weights of faults, by their names
	weights map[string]float64
}

// moods are the moods of the world.
var moods = []mood{
	{name: "calm", weights: map[string]float64{late: 0.2}},
	{name: "lossy", weights: map[string]float64{
		lost:   0.6,
		mute:   1,
		late:   0.6,
		twice:  0.6,
		broken: 0.5,
		failed: 0.2,
		unsure: 0.3,
		"lose": 2,
		"cut":  0.3,
		"deaf": 0.3,
	}},
	{name: "deadly", weights: map[string]float64{
		"kill":    2,
		"stop":    0.7,
		"lose":    1,
		late:      0.3,
		"restart": 4,
		"mistake": 1,
	}},
	// Servers are told to stop, often while a tool is at work there, and time passes meanwhile.
	{name: "leaving", weights: map[string]float64{
		"stop":    3,
		"linger":  1,
		"restart": 6,
		"time":    2,
		"lose":    0.3,
		late:      0.2,
	}},
	{name: "sleepy", weights: map[string]float64{"suspend": 2, late: 1, "time": 2, "lose": 0.5}},
	{name: "cut off", weights: map[string]float64{
		"cut":  1.5,
		"deaf": 2,
		late:   1,
		"time": 2,
		"lose": 1,
		mute:   0.3,

		"mistake": 2,
	}},
	{name: "wild", weights: map[string]float64{
		lost:      0.3,
		mute:      0.5,
		late:      0.8,
		twice:     0.3,
		broken:    0.3,
		failed:    0.1,
		unsure:    0.2,
		"lose":    1,
		"kill":    0.8,
		"stop":    0.4,
		"restart": 3,
		"suspend": 0.8,
		"cut":     0.5,
		"deaf":    0.8,
		"time":    1,
		"mistake": 1,
	}},
}

// afterAll is a time at which everything has expired.
var afterAll = time.Unix(1<<40, 0)
