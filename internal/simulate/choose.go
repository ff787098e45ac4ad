package simulate

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// The scheduler: what can happen next, how likely it is, and what is chosen.

// options are the choices while they are gathered.
type options struct {
	w    *World
	list []choice
	// all means that faults count which the world's mood does not have.
	all bool
	// hot are the servers at which something is about to happen that a takeover must prevent.
	hot map[*server]bool
	// busy are the servers at which a tool is at work.
	busy map[*server]bool
	// away means that a server cannot be heard while time passes.
	away bool
}

// add adds a choice, unless it is a fault that the world's mood does not have.
func (o *options) add(name string, weight float64, do func()) {
	if weight > 0 || o.all {
		o.list = append(o.list, choice{name, weight, do})
	}
}

// mood returns the weight of a fault.
func (o *options) mood(fault string) float64 { return o.w.plan.mood.weights[fault] }

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

// seams adds the goroutines that can be let go.
func (o *options) seams() {
	all := o.w.gate.sorted()
	for i, name := range named(all) {
		one := all[i]
		reply := strings.HasSuffix(one.name, " reply")
		if strings.Contains(name, " start ") || reply && strings.Contains(name, " commit ") {
			o.hot[one.server] = true
		}
		link := one.server.link
		if one.server.suspended || one.linked && (link.cut && !reply || link.deaf && reply) {
			continue
		}
		weight := 10.0
		if reply || strings.Contains(name, " start ") {
			weight = 4
		}
		if strings.Contains(name, " tool ") {
			o.busy[one.server] = true
			if one.server.stopping && o.mood("linger") > 0 {
				weight = 0.5
			}
		}
		if one.linked && link.deaf { // it is carried out, and the reply has to wait
			o.add(name+" "+late, weight, func() { o.w.gate.let(one, late) })
			continue
		}
		o.add(name, weight, func() { o.w.gate.let(one, goOn) })
		for _, fault := range one.options {
			factor := 1.0
			if fault == late && strings.Contains(name, " commit ") {
				factor = 3
			}
			o.add(name+" "+fault, factor*o.mood(fault), func() { o.w.gate.let(one, fault) })
		}
	}
}

// told adds what the store can tell.
func (o *options) told() {
	seen := map[string]int{}
	for _, n := range o.w.due() {
		name := n.name
		if seen[n.name]++; seen[n.name] > 1 {
			continue // the first of that name comes first
		}
		if n.server != nil && (n.server.suspended || n.server.link.cut || n.server.link.deaf) {
			continue
		}
		weight := 6.0
		if n.server == nil {
			weight = 1
		}
		o.add(name, weight, func() { o.w.take(n); n.deliver() })
		if n.lose != nil {
			o.add(name+" is lost", o.mood("lose"), func() { o.w.take(n); n.lose() })
		}
	}
}

// processes adds what can become of processes.
func (o *options) processes() {
	living := 0
	for _, s := range o.w.servers {
		if !s.isDead() && !s.stopping {
			living++
		}
	}
	for _, s := range o.w.servers {
		hot := 1.0
		if o.hot[s] {
			hot = 6
		}
		switch {
		case s.isDead():
			o.add(s.name+" is started", 0.5+o.mood("restart"), func() { o.restart(s, s.variant) })
			o.add(s.name+" is started with another revision", 0.1*o.mood("restart"), func() {
				v := s.variant
				v.revision = map[string]string{"r1": "r2", "r2": "r1"}[v.revision]
				o.restart(s, v)
			})
			o.add(s.name+" is started without the agent", 0.1*o.mood("restart"), func() {
				o.restart(s, variant{revision: s.variant.revision, without: true})
			})
			continue
		case s.suspended:
			o.away = true
			o.add(s.name+" goes on", 1.5, func() { s.suspended = false })
		default:
			o.add(s.name+" is suspended", 0.3*hot*o.mood("suspend"), func() { s.suspended = true })
		}
		if s.link.cut || s.link.deaf {
			o.away = true
			o.add(s.name+" is in touch", 1.5, func() { s.link.cut, s.link.deaf = false, false })
		} else {
			o.add(s.name+" is cut off", 0.2*hot*o.mood("cut"), func() { s.link.cut = true })
			o.add(s.name+" gets no replies", 0.3*hot*o.mood("deaf"), func() { s.link.deaf = true })
		}
		if living > 1 || o.mood("restart") > 0 {
			o.add(s.name+" is killed", 0.1*hot*o.mood("kill"), func() { s.die(true) })
			o.add(s.name+" is killed unnoticed", 0.05*hot*o.mood("kill"), func() { s.die(false) })
		}
		if !s.stopping && s.ready.Load() {
			weight := 0.1 * o.mood("stop")
			if o.busy[s] && o.mood("linger") > 0 {
				weight *= 10
			}
			o.add(s.name+" is told to stop", weight, s.stop)
		}
	}
}

// restart starts a server in place of a dead one.
func (o *options) restart(s *server, v variant) {
	o.w.servers[s.index] = o.w.newServer(s.index, s.life+1, v)
}

// requests adds what clients can do.
func (o *options) requests() {
	for _, c := range append(slices.Clone(o.w.clients), o.w.asides...) {
		if c.reads() {
			weight := 0.3
			if c.server.isDead() {
				weight = 0
			}
			o.add(c.name+" is cut off", weight, c.leave)
		}
	}
	for _, c := range o.w.clients {
		for _, s := range o.w.servers {
			if s.serves() && !s.suspended {
				o.request(c, s)
				o.branches(c, s)
				o.brings(c, s)
				o.aside(c, s)
			}
		}
	}
	for _, s := range o.w.servers {
		if s.serves() && !s.suspended {
			o.outside(s)
			o.upkeep(s)
		}
	}
}

// request adds what a client can do at a server.
func (o *options) request(c *client, s *server) {
	at := " at " + s.name
	if c.page.run != "" && c.page.cursor.Number > 0 && !c.page.over {
		o.add(c.name+" cancels"+at, 0.1, func() { c.cancel(s) })
	}
	if c.reads() {
		return
	}
	if c.posts < maxPosts {
		weight := 2.0
		if c.posts > 0 {
			weight = 0.6
		}
		o.add(c.name+" posts"+at, weight, func() { c.say(s, "") })
		o.add(c.name+" posts and cancels"+at, 0.2*weight, func() {
			c.say(s, `"onBusy":"cancel_and_run","onUnfinished":"abandon","onInterrupted":"decline"`)
		})
	}
	if c.sent < maxRequests && c.posts > 0 {
		o.add(c.name+" posts nothing"+at, 0.4, func() { c.post(s, c.input("")) })
		o.add(c.name+" posts again"+at, 0.4, func() { c.post(s, c.last) })
		if len(c.page.open) > 0 {
			o.add(c.name+" says yes"+at, 2, func() { c.answer(s, true) })
			o.add(c.name+" says no"+at, 0.5, func() { c.answer(s, false) })
			o.add(c.name+" says something else"+at, 0.3, func() { c.differ(s) })
		}
	}
	o.add(c.name+" attaches"+at, 0.3, func() { c.attach(s) })
	if c.page.run != "" && c.page.cursor.Number > 0 {
		o.add(c.name+" comes back"+at, 1, func() { c.resume(s) })
		o.add(c.name+" comes back to the thread"+at, 0.4, func() { c.goOn(s) })
		if c.last != nil {
			o.add(c.name+" comes back with its request"+at, 0.4, func() { c.repost(s) })
		}
	}
}

// branches adds what a page can do that shows the whole conversation.
func (o *options) branches(c *client, s *server) {
	if !o.w.plan.extras.branches || c.reads() || c.sent >= maxRequests || c.posts == 0 {
		return
	}
	at := " at " + s.name
	o.add(c.name+" has it answered again"+at, 0.3, func() { c.branch(s, users(-1, false)) })
	o.add(c.name+" edits the last message"+at, 0.3, func() { c.branch(s, users(-1, true)) })
	o.add(c.name+" edits the first message"+at, 0.3, func() { c.branch(s, users(0, true)) })
	o.add(c.name+" goes back to another branch"+at, 0.5, func() { c.branch(s, (*client).elsewhere) })
}

// brings adds that a page brings the results of its own tool.
func (o *options) brings(c *client, s *server) {
	if len(c.page.pending) == 0 || c.reads() || c.sent >= maxRequests {
		return
	}
	at := " at " + s.name
	o.add(c.name+" brings its results"+at, 2, func() { c.bring(s, len(c.page.pending)) })
	o.add(c.name+" brings one result"+at, 1, func() { c.bring(s, 1) })
}

// aside adds that a page asks beside its conversation.
func (o *options) aside(c *client, s *server) {
	if o.w.plan.extras.asides && len(o.w.asides) < maxAsides {
		o.add(c.name+" asks aside at "+s.name, 0.3, func() { o.w.askAside(s) })
	}
}

// outside adds what the service can do at a server.
func (o *options) outside(s *server) {
	if !o.w.plan.extras.outside {
		return
	}
	o.w.mu.Lock()
	all := slices.SortedFunc(maps.Values(o.w.truth.handed), func(a, b *handed) int {
		return cmp.Or(cmp.Compare(a.thread, b.thread), cmp.Compare(a.id, b.id))
	})
	o.w.mu.Unlock()
	for _, h := range all {
		if h.sent >= maxResults {
			continue
		}
		weight, name := 1/float64(1+2*h.sent), h.id+" of "+h.thread+" at "+s.name
		send := func(result string, fails, byUser bool) func() {
			return func() { o.w.finish(s, h, json.RawMessage(result), fails, byUser) }
		}
		o.add("the service finishes "+name, weight, send(`{"by":"it"}`, false, false))
		o.add("the service finishes otherwise "+name, 0.3*weight, send(`{"by":"another"}`, false, false))
		o.add("the service fails "+name, 0.2*weight, send(`"it broke"`, true, false))
		o.add("the service says what does not fit "+name, 0.1*weight, send(`"a text"`, false, false))
		o.add("the user finishes "+name, 0.3*weight, send(`{"by":"her"}`, false, true))
	}
	for _, id := range o.w.plan.ids() {
		o.add("upkeep looks after "+id+" at "+s.name, 0.1, func() { o.w.lookAfter(s, id) })
	}
}

// upkeep adds what operators can do at a server.
func (o *options) upkeep(s *server) {
	if !o.w.plan.extras.upkeep {
		return
	}
	at := " at " + s.name
	for _, id := range o.w.plan.ids() {
		o.add("an operator describes "+id+at, 0.4, func() { o.w.describe(s, id) })
		o.add("an operator looks at "+id+at, 0.2, func() { o.w.lookAt(s, id) })
	}
	o.add("an operator calls a tool"+at, 0.1, func() { o.w.callByHand(s, `{"n":1}`) })
	o.add("an operator calls a tool wrongly"+at, 0.05, func() { o.w.callByHand(s, `{"n":"one"}`) })
	if !s.variant.without {
		o.add("an operator reloads"+at, 0.3, s.reload)
	}
}

// The most that a client does.
const (
	maxPosts    = 3
	maxRequests = 8
)

// time adds that time passes.
func (o *options) time() {
	factor := 1 + o.mood("time")
	if o.away {
		factor *= 3
	}
	pass := func(d time.Duration) func() { return func() { time.Sleep(d) } }
	o.add("5ms pass", 1.5, pass(5*time.Millisecond))
	o.add("60ms pass", 0.8, pass(60*time.Millisecond))
	o.add("350ms pass", 0.3*factor, pass(350*time.Millisecond))
	o.add("1.2s pass", 0.1*factor, pass(1200*time.Millisecond))
}
