package simulate

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/memstore"
)

// A schedule from its beginning to its end.

// Result is what came of a schedule.
type Result struct {
	// Violation is nil if every promise was kept.
	Violation *Violation
	// Story has the steps and what was seen, line by line.
	Story []string
	// Steps are the names of the steps that were chosen.
	Steps []string
}

// Run plays the schedule of a seed. If script is not nil, its steps are played instead, as
// far as they are possible. With redis, it goes through the Redis layer. It is called in a bubble of testing/synctest.
func Run(seed uint64, script []string, redis bool) *Result {
	p := planOf(seed)
	w := &World{plan: p, began: clock.Now(), agents: (*server).agents}
	if w.base = memstore.New(); redis {
		w.redis = newRemote(w)
		w.base = w.redis.seen
	}
	w.truth.init()
	w.say(p.String())
	for i := range p.servers {
		w.servers = append(w.servers, w.newServer(i, 1, p.variants[i]))
	}
	for i := range p.clients {
		w.clients = append(w.clients, w.newClient(i))
	}
	c := &chooser{rand: rand.New(rand.NewPCG(seed, 0x5eed)), script: script, scripted: script != nil}
	for c.scripted || len(c.taken) < p.steps {
		if !w.step(c) {
			break
		}
	}
	w.settle()
	w.checkEnd()
	w.close()
	return &Result{Violation: w.violation(), Story: w.story, Steps: c.taken}
}

// step makes one step. It reports false if there is none, or if a promise was broken.
func (w *World) step(c *chooser) bool {
	time.Sleep(moment)
	w.rest()
	w.look()
	if w.violation() != nil {
		return false
	}
	next := c.choose(w.choices(c.scripted))
	if next == nil {
		return false
	}
	w.say(fmt.Sprintf("%9.4fs %s", w.began.Ran().Seconds(), next.name))
	next.do()
	return true
}

// choices returns what can happen next; all of it if a script chooses.
func (w *World) choices(all bool) []choice {
	o := &options{w: w, all: all, hot: map[*server]bool{}, busy: map[*server]bool{}}
	o.seams()
	o.told()
	o.processes()
	o.requests()
	o.time()
	return o.list
}
