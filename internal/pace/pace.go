// Package pace spreads model calls that would all be made at once. When a server dies, the others go
// on with its runs within a second, and each of these repeats the call that it was in: more calls at
// a time than its provider has seen before. So they wait in a line. The first ones are let go at
// once, so that few never wait, and the others at a rate that doubles as long as none is refused.
// A refusal halves it, and what the provider asks to wait holds for the whole line.
//
// The servers do not agree on this: each takes its share, by how many there are. Each finds the rate
// that the provider allows from its own calls.
package pace

import (
	"sync"
	"time"
)

const (
	// First is how many calls all servers together make at once, and firstRate how many a second
	// they make after that, until the first step.
	First     = 64
	firstRate = 128
	// Step is how often the rate grows, or falls.
	Step = 250 * time.Millisecond
	// careful is what the rate is multiplied by once a call was refused.
	careful = 1.0625
	// slowest is how many calls a second a server makes at least, unless very many share them.
	slowest = 1
	// longest bounds how long a provider can make a line wait.
	longest = 2 * time.Minute
	// memory is how long a line knows what it has found out while nobody waits.
	memory = time.Minute
	// shortest is how long the next ones wait at least.
	shortest = 5 * time.Millisecond
)

// Lines are the lines of a process, one for each circuit. All methods may be called concurrently.
type Lines struct {
	random func() float64
	mu     sync.Mutex
	all    map[string]*line // by circuit
	timers map[string]*time.Timer
}

// Place is a place in a line.
type Place struct {
	circuit string
	others  bool
	told    chan bool
}

// Turn receives once: true if the call may be made, or false if a call was refused, so that who has
// another model should ask that one.
func (p *Place) Turn() <-chan bool { return p.told }

// New returns the lines. random returns numbers from 0 up to 1.
func New(random func() float64) *Lines {
	return &Lines{random: random, all: map[string]*line{}, timers: map[string]*time.Timer{}}
}

// of returns the line of a circuit, which so many servers share. The caller holds mu.
func (ls *Lines) of(circuit string, servers int, now time.Time) *line {
	l := ls.all[circuit]
	if l == nil || l.forgotten(now) {
		l = newLine(now, servers, ls.random)
		ls.all[circuit] = l
	}
	return l
}

// Enter returns a place for a call of the model with that circuit, or nil if it may be made at once.
// servers is how many make such calls with this one, as far as is known, and others means that the caller
// has other models, too.
func (ls *Lines) Enter(circuit string, servers int, others bool) *Place {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	now := time.Now()
	l := ls.of(circuit, servers, now)
	l.let(now)
	if len(l.places) == 0 && !now.Before(l.counted) && l.take() {
		return nil
	}
	p := &Place{circuit: circuit, others: others, told: make(chan bool, 1)}
	if l.places = append(l.places, p); len(l.places) == 1 {
		ls.wake(circuit, l.next(now))
	}
	return p
}

// Leave gives a place up.
func (ls *Lines) Leave(p *Place) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.all[p.circuit].remove(p)
}

// Refused notes that the provider has refused a call of any run because there were too many, and how
// long it asked to wait; 0 if it did not.
func (ls *Lines) Refused(circuit string, servers int, after time.Duration) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	now := time.Now()
	l := ls.of(circuit, servers, now)
	if l.refused(now, after) {
		l.lookAgain()
	}
}

// Waiting returns how many calls wait.
func (ls *Lines) Waiting() (n int) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.all {
		n += len(l.places)
	}
	return n
}

// wake looks at a line again after d. The caller holds mu.
func (ls *Lines) wake(circuit string, d time.Duration) {
	if t := ls.timers[circuit]; t != nil {
		t.Reset(d)
		return
	}
	ls.timers[circuit] = time.AfterFunc(d, func() { ls.goOn(circuit) })
}

// goOn lets those of a line go on who may, and looks again later if there are more.
func (ls *Lines) goOn(circuit string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	now := time.Now()
	l := ls.all[circuit]
	if l.let(now); len(l.places) > 0 {
		ls.wake(circuit, l.next(now))
	}
}
