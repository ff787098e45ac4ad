package owner

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// Servers that share a store need not have the same agents. Each says which ones it has, of which
// revisions, and whether it goes on with runs that have lost their server. So a server that cannot go on with a run
// leaves it to one that can, and does not end it.

// fleet is what this process knows of the others that have the store open.
type fleet struct {
	roster  store.Roster // nil if the store is none
	census  store.Census // nil if the store is none
	process string
	lease   time.Duration
	said    []byte // what this process has said; only keepLease and what comes before it use it

	mu    sync.Mutex
	known *heirs       // as they were read then; nil if they must be read
	read  clock.Moment // when that was
}

func newFleet(s store.Store, process string, lease time.Duration) *fleet {
	roster, _ := s.(store.Roster)
	census, _ := s.(store.Census)
	return &fleet{roster: roster, census: census, process: process, lease: lease}
}

// say tells the others what this process can do, if that is new.
func (f *fleet) say(ctx context.Context, a *agents.Set, recovers bool) error {
	if f.roster == nil {
		return nil
	}
	about := abilities{Agents: make(map[string]string, len(a.List)), Recovers: recovers, PatchesState: true}
	for _, one := range a.List {
		about.Agents[one.Name] = one.Agent.Revision
	}
	data := thread.MustJSON(about)
	if bytes.Equal(data, f.said) {
		return nil
	}
	if err := f.roster.Describe(ctx, f.process, data); err != nil {
		return err
	}
	f.said = data
	return nil
}

// abilitiesOf reads what a process has said of itself.
func abilitiesOf(about []byte) *abilities {
	a := &abilities{}
	a.silent = json.Unmarshal(about, a) != nil
	return a
}

// any reports whether one of the other processes that live is as wanted. leaving is the owner that a
// run has lost: it may still be among them.
func (f *fleet) any(ctx context.Context, leaving string, wanted func(*abilities) bool) (bool, error) {
	if f.roster == nil {
		return false, nil
	}
	described, err := f.roster.Described(ctx)
	if err != nil {
		return false, err
	}
	for process, about := range described {
		if process != f.process && process != leaving && wanted(abilitiesOf(about)) {
			return true, nil
		}
	}
	return false, nil
}

// heirs returns the order of the processes, as it was a lease ago at most.
func (f *fleet) heirs(ctx context.Context) (*heirs, error) {
	if f.roster == nil {
		return newHeirs(f.process, nil), nil
	}
	f.mu.Lock()
	known := f.known
	fresh := known != nil && f.read.Ran() < f.lease
	f.mu.Unlock()
	if fresh {
		return known, nil
	}
	begun := clock.Now()
	described, err := f.roster.Described(ctx)
	if err != nil {
		return nil, err
	}
	absent := func(string) bool { return false }
	if f.census != nil {
		_, absent = f.census.Census()
	}
	living := map[string]*abilities{}
	for process, about := range described {
		if !absent(process) { // nobody waits for one that is
			living[process] = abilitiesOf(about)
		}
	}
	known = newHeirs(f.process, living)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known, f.read = known, begun
	return known, nil
}

// forget has the order of the processes read the next time.
func (f *fleet) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known = nil
}

// patchesState reports whether a process, which owns a run, changes its shared state as requests ask for.
func (f *fleet) patchesState(ctx context.Context, process string) (bool, error) {
	if f.roster == nil || process == f.process {
		return true, nil
	}
	described, err := f.roster.Described(ctx)
	if err != nil {
		return false, err
	}
	return abilitiesOf(described[process]).PatchesState, nil
}
