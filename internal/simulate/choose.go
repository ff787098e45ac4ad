package simulate

import (
	"strings"
	"time"
)

// The scheduler: what can happen next, how likely it is, and what is chosen.

// options are the choices while they are gathered.
type options struct {
	w    *World
	play *schedule
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
func (o *options) add(weight float64, do func(), name ...string) {
	if weight > 0 || o.all {
		c := choice{weight: weight, do: do}
		copy(c.parts[:], name)
		o.list = append(o.list, c)
	}
}

// mood returns the weight of a fault.
func (o *options) mood(fault string) float64 { return o.w.plan.mood.weights[fault] }

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
		if one.auto || one.server.suspended.Load() ||
			one.linked && (link.cut.Load() && !reply || link.deaf.Load() && reply) {
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
		if one.linked && link.deaf.Load() { // it is carried out, and the reply has to wait
			o.add(weight, func() { o.w.gate.let(one, late) }, name, " ", late)
			continue
		}
		o.add(weight, func() { o.w.gate.let(one, goOn) }, name)
		for _, fault := range one.options {
			factor := 1.0
			if fault == late && strings.Contains(name, " commit ") {
				factor = 3
			}
			o.add(factor*o.mood(fault), func() { o.w.gate.let(one, fault) }, name, " ", fault)
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
		if n.server != nil && (n.server.suspended.Load() || n.server.link.cut.Load() || n.server.link.deaf.Load()) {
			continue
		}
		weight := 6.0
		if n.server == nil {
			weight = 1
		}
		o.add(weight, func() { o.w.take(n); n.deliver() }, name)
		if n.lose != nil {
			o.add(o.mood("lose"), func() { o.w.take(n); n.lose() }, name, " is lost")
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
			o.add(0.5+o.mood("restart"), func() { o.restart(s, s.variant) }, s.name, " is started")
			o.add(0.1*o.mood("restart"), func() {
				v := s.variant
				v.revision = map[string]string{"r1": "r2", "r2": "r1"}[v.revision]
				o.restart(s, v)
			}, s.name, " is started with another revision")
			o.add(0.1*o.mood("restart"), func() {
				o.restart(s, variant{revision: s.variant.revision, without: true})
			}, s.name, " is started without the agent")
			continue
		case s.suspended.Load():
			o.away = true
			o.add(1.5, func() { s.suspended.Store(false) }, s.name, " goes on")
		default:
			o.add(0.3*hot*o.mood("suspend"), func() { s.suspended.Store(true) }, s.name, " is suspended")
		}
		o.connections(s, hot)
		if living > 1 || o.mood("restart") > 0 {
			o.add(0.1*hot*o.mood("kill"), func() { s.die(true) }, s.name, " is killed")
			o.add(0.05*hot*o.mood("kill"), func() { s.die(false) }, s.name, " is killed unnoticed")
		}
		if o.w.plan.extras.mistakes && s.ready.Load() {
			o.add(0.1*hot*o.mood("mistake"), s.mistake, s.name, " is taken for dead")
		}
		if !s.stopping && s.ready.Load() {
			weight := 0.1 * o.mood("stop")
			if o.busy[s] && o.mood("linger") > 0 {
				weight *= 10
			}
			o.add(weight, s.stop, s.name, " is told to stop")
		}
	}
}

// connections adds what can become of a server's connections to the store.
func (o *options) connections(s *server, hot float64) {
	if s.link.cut.Load() || s.link.deaf.Load() {
		o.away = true
		o.add(1.5, func() { s.inTouch() }, s.name, " is in touch")
	} else {
		o.add(0.2*hot*o.mood("cut"), func() { s.link.cut.Store(true) }, s.name, " is cut off")
		if s.line != nil {
			o.add(0.3*hot*o.mood("cut"), s.line.Break, s.name, "'s connections break")
		}
		o.add(0.3*hot*o.mood("deaf"), func() { s.link.deaf.Store(true) }, s.name, " gets no replies")
	}
}

// restart starts a server in place of a dead one.
func (o *options) restart(s *server, v variant) {
	o.w.servers[s.index] = o.w.newServer(s.index, s.life+1, v)
}

// time adds that time passes.
func (o *options) time() {
	factor := 1 + o.mood("time")
	if o.away {
		factor *= 3
	}
	pass := func(d time.Duration) func() { return func() { time.Sleep(d) } }
	o.add(1.5, pass(5*time.Millisecond), "5ms pass")
	o.add(0.8, pass(60*time.Millisecond), "60ms pass")
	o.add(0.3*factor, pass(350*time.Millisecond), "350ms pass")
	o.add(0.1*factor, pass(1200*time.Millisecond), "1.2s pass")
}
