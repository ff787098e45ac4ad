package simulate

import (
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
		if n.server != nil && (n.server.suspended.Load() || n.server.link.cut.Load() || n.server.link.deaf.Load()) {
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
		case s.suspended.Load():
			o.away = true
			o.add(s.name+" goes on", 1.5, func() { s.suspended.Store(false) })
		default:
			o.add(s.name+" is suspended", 0.3*hot*o.mood("suspend"), func() { s.suspended.Store(true) })
		}
		o.connections(s, hot)
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

// connections adds what can become of a server's connections to the store.
func (o *options) connections(s *server, hot float64) {
	if s.link.cut.Load() || s.link.deaf.Load() {
		o.away = true
		o.add(s.name+" is in touch", 1.5, func() { s.inTouch() })
	} else {
		o.add(s.name+" is cut off", 0.2*hot*o.mood("cut"), func() { s.link.cut.Store(true) })
		if s.line != nil {
			o.add(s.name+"'s connections break", 0.3*hot*o.mood("cut"), s.line.Break)
		}
		o.add(s.name+" gets no replies", 0.3*hot*o.mood("deaf"), func() { s.link.deaf.Store(true) })
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
	o.add("5ms pass", 1.5, pass(5*time.Millisecond))
	o.add("60ms pass", 0.8, pass(60*time.Millisecond))
	o.add("350ms pass", 0.3*factor, pass(350*time.Millisecond))
	o.add("1.2s pass", 0.1*factor, pass(1200*time.Millisecond))
}
