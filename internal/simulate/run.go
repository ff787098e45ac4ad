package simulate

import (
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

// Options are the choices of [Run].
type Options struct {
	// Script has the steps that are played, as far as they are possible; if it is nil the seed chooses.
	Script []string
	// Redis has the schedule go through the Redis layer.
	Redis bool
	// Untold means that nobody wants the story. It has the same steps.
	Untold bool
}

// Run plays the schedule of a seed. It is called in a bubble of testing/synctest.
func Run(seed uint64, o Options) *Result {
	p := planOf(seed)
	w := &World{plan: p, began: clock.Now(), agents: (*server).agents, untold: o.Untold}
	play := &schedule{world: w}
	if w.base = memstore.New(); o.Redis {
		w.redis = newRemote(w)
		w.base = w.redis.seen
	}
	w.truth.init()
	w.say(p.String())
	for i := range p.servers {
		w.servers = append(w.servers, w.newServer(i, 1, p.variants[i]))
	}
	for i := range p.clients {
		play.clients = append(play.clients, newClient(w, i))
	}
	c := &chooser{rand: rand.New(rand.NewPCG(seed, 0x5eed)), script: o.Script, scripted: o.Script != nil}
	for c.scripted || len(c.taken) < p.steps {
		if !play.step(c) {
			break
		}
	}
	play.settle()
	w.checkEnd()
	w.close()
	return &Result{Violation: w.violation(), Story: w.story, Steps: c.taken}
}

// step makes one step. It reports false if there is none, or if a promise was broken.
func (p *schedule) step(c *chooser) bool {
	w := p.world
	time.Sleep(moment)
	w.rest()
	w.look()
	if w.violation() != nil {
		return false
	}
	next := c.choose(p.choices(c.scripted))
	if next == nil {
		return false
	}
	w.sayNow(c.taken[len(c.taken)-1])
	next.do()
	return true
}

// choices returns what can happen next; all of it if a script chooses.
func (p *schedule) choices(all bool) []choice {
	w := p.world
	o := &options{
		w:    w,
		play: p,
		list: p.list[:0],
		all:  all,
		hot:  map[*server]bool{},
		busy: map[*server]bool{},
	}
	o.seams()
	o.told()
	o.processes()
	o.requests()
	o.time()
	p.list = o.list
	return o.list
}
