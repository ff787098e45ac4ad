package simulate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast/threads"
)

// The end of a schedule: faults stop, and whatever was accepted must come to an end.

// within is how long it may take until every run has ended once faults have stopped: a store
// that was given up, a lease, a run that has waited for its revision.
const within = 30 * time.Second

// settle lets everything go on, without faults, until every thread rests.
func (p *schedule) settle() {
	w := p.world
	if w.violation() != nil {
		return
	}
	w.rest()
	w.say("          faults stop")
	w.settled.Store(true)
	able := false
	for i, s := range w.servers {
		switch {
		case s.isDead() && i == 0:
			w.servers[i] = w.newServer(i, s.life+1, variant{revision: "r1"})
			able = true
		case !s.isDead():
			s.back()
			able = able || !s.stopping && !s.variant.without && !s.variant.noRecover
		}
	}
	if !able {
		w.plan.skews = append(w.plan.skews, 0)
		w.servers = append(w.servers, w.newServer(len(w.servers), 1, variant{revision: "r1"}))
	}
	p.come()
	p.sayInForks()
	p.compareShown()
	p.readLogs()
	if w.plan.seed%4 == 0 {
		p.fill()
	}
	for i := 0; i < 60 && keptAgents(w.servers) != "" && w.violation() == nil; i++ { // as in fill
		p.drain()
		time.Sleep(100 * time.Millisecond)
	}
	w.rest()
	w.look()
}

// come waits until everything has come to an end.
func (p *schedule) come() {
	w := p.world
	deadline := time.Now().Add(within)
	for w.violation() == nil {
		if p.drain(); p.quiet() {
			return
		}
		w.goOn()
		if time.Now().After(deadline) {
			w.violate("an accepted run ends", "after %s: %s", within, strings.Join(p.unrest(), "; "))
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// fill begins as many runs as there is room for on a server that has none. Each gets a place,
// unless a run has kept one.
func (p *schedule) fill() {
	w := p.world
	for range 60 { // those of which it is not known whether they have begun are given up
		p.drain()
		time.Sleep(100 * time.Millisecond)
	}
	for _, s := range w.servers {
		if !s.serves() || s.variant.without {
			continue
		}
		for i := range maxRuns {
			c := &client{world: w, name: fmt.Sprintf("p%d", i+1), thread: fmt.Sprintf("p%d-%s", i+1, s.name)}
			p.clients = append(p.clients, c)
			c.full = true
			c.post(s, c.input("do "))
		}
		p.come()
	}
}

// sayInForks has somebody go on in each fork, for which there may have been no time: with the run that
// it has half of, and with a message of their own.
func (p *schedule) sayInForks() {
	w := p.world
	for _, c := range p.clients {
		if !slices.Contains(w.forks, c.thread) || c.posts > 0 || w.lacks(c.thread) || w.violation() != nil {
			continue
		}
		if i := slices.IndexFunc(w.servers, func(s *server) bool { return s.serves() && !s.variant.without }); i >= 0 {
			c.post(w.servers[i], c.input(""))
			p.come()
			c.say(w.servers[i], `"onBusy":"cancel_and_run","onUnfinished":"abandon","onInterrupted":"decline"`)
			p.come()
		}
	}
}

// mostAtOnce is how many steps there may be until nothing moves, while hardly any time passes.
const mostAtOnce = 20000

// drain lets go who waits, in order, and tells what is due, until nothing moves.
func (p *schedule) drain() {
	w := p.world
	for n := 0; w.violation() == nil; n++ {
		if n > mostAtOnce {
			w.violate("an accepted run ends", "after %d steps something still moves: %s", n,
				strings.Join(p.unrest(), "; "))
			return
		}
		time.Sleep(moment)
		w.rest()
		if due := w.due(); len(due) > 0 {
			w.sayNow(due[0].name)
			w.take(due[0])
			due[0].deliver()
			continue
		}
		all := w.gate.sorted()
		if len(all) == 0 {
			return
		}
		w.sayNow(all[0].name)
		w.gate.let(all[0], goOn)
	}
}

// quiet reports whether every thread rests, and no stream is open.
func (p *schedule) quiet() bool { return len(p.unrest()) == 0 }

// unrest says what goes on.
func (p *schedule) unrest() (list []string) {
	w := p.world
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.heads.read(w.base, w.truth.threads, w.changes.Load()) {
		switch {
		case h.err != nil:
			list = append(list, h.id+": "+h.err.Error())
		case h.st.Status() == threads.StatusRunning:
			list = append(list, h.id+" runs at "+h.process)
		case w.nextFor(h.st) != nil:
			list = append(list, h.id+" has all that it has waited for")
		}
	}
	for _, c := range append(slices.Clone(p.clients), p.asides...) {
		if c.stop != nil && !c.page.over {
			list = append(list, c.name+" reads")
		}
	}
	for _, s := range w.servers {
		if !s.isDead() && s.engine.Running() > 0 {
			list = append(list, s.name+" runs")
		}
	}
	slices.Sort(list)
	return list
}

// close ends all servers, and waits until no goroutine of theirs is left.
func (w *World) close() {
	w.settled.Store(true)
	for _, s := range w.servers {
		if !s.isDead() {
			s.die(false)
		}
	}
	for _, one := range w.gate.sorted() {
		w.gate.let(one, dead)
	}
	over := make(chan struct{})
	go func() {
		w.ended.Wait()
		close(over)
	}()
	limit := time.NewTimer(5 * time.Minute)
	defer limit.Stop()
	for {
		select {
		case <-over:
			if w.redis != nil {
				w.redis.close()
			}
			return
		case <-limit.C:
			panic("a server does not end")
		case <-time.After(50 * time.Millisecond):
			for _, one := range w.gate.sorted() {
				w.gate.let(one, dead)
			}
		}
	}
}

// compareShown has each client look at its thread as a fresh page, and compares what it is shown with what
// is stored.
func (p *schedule) compareShown() {
	w := p.world
	if !w.plan.extras.states {
		return
	}
	able := slices.IndexFunc(w.servers, func(s *server) bool { return s.serves() && !s.variant.without })
	for _, c := range p.clients {
		if able < 0 || w.lacks(c.thread) || w.violation() != nil {
			continue
		}
		c.page = page{} // unless it is answered, it has nothing
		c.attach(w.servers[able])
		p.come()
		w.mu.Lock()
		if k := w.truth.of(c.thread); c.page.over {
			c.same("state", c.page.shown.state, k.docs.state)
			c.sameActivities(k)
		}
		w.mu.Unlock()
	}
}

// readLogs has somebody read the newest runs of each thread from their beginning, when some have been
// archived. Those that are there come to their end.
func (p *schedule) readLogs() {
	w := p.world
	able := slices.IndexFunc(w.servers, func(s *server) bool { return s.serves() && !s.variant.without })
	if !w.plan.extras.keepers || able < 0 {
		return
	}
	for _, id := range w.ids() {
		w.mu.Lock()
		runs := w.truth.of(id).runs()
		w.mu.Unlock()
		for _, run := range runs[max(0, len(runs)-maxLogs):] {
			if w.lacks(id) || w.violation() != nil {
				break
			}
			c := &client{world: w, name: "reader of " + run, thread: id}
			p.clients = append(p.clients, c)
			c.page.run = run
			c.read(w.servers[able], "read", true, c.get("/threads/"+id+"/runs/"+run+"/events"))
			p.come()
			if c.page.cursor.Number > 0 && !c.page.over {
				w.violate(neededPromise, "the log of %s of %s has no end", run, id)
			}
		}
	}
}

// maxLogs is how many runs of a thread are read at the end.
const maxLogs = 3
