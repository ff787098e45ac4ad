package owner

import (
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast/store"
)

// In which order processes try what an owner has left, without asking each other: each process has a
// weight for each thread, which follows from their names, and the heaviest one that can go on with the
// thread comes first. So they share the work, and each thread has an order of its own.

// abilities are what a process says of itself.
type abilities struct {
	// Agents are the revisions of its agents, by name; empty for an agent without one.
	Agents map[string]string `json:"agents"`
	// Recovers means that it goes on with runs that have lost their server.
	Recovers bool `json:"recovers"`
	// PatchesState means that it changes the shared state of its runs as requests ask for.
	PatchesState bool `json:"patchesState,omitempty"`
	// silent means that it has said nothing, because it is of a version that does not, or nothing that
	// this one understands. It counts as one that can do everything.
	silent bool
}

// goesOnWith reports whether the process goes on with runs of the agent, with the revision unless
// that is empty.
func (a *abilities) goesOnWith(agent, revision string) bool {
	has, known := a.Agents[agent]
	return a.silent || a.Recovers && known && (revision == "" || has == revision)
}

// heirs are the processes that live, and in which order they try threads.
type heirs struct {
	process string
	all     []string
	// able are those that can go on with runs of an agent, for each agent that any of them has, unless
	// all can. Agents with the same ones share them.
	able   [][]string
	groups map[string]int // by agent
}

// newHeirs returns the order of the processes; process is this one, which is among them in any case.
func newHeirs(process string, living map[string]*abilities) *heirs {
	h := &heirs{process: process, groups: map[string]int{}}
	names, wanted := map[string]bool{process: true}, map[string]bool{}
	for name, about := range living {
		names[name] = true
		for agent := range about.Agents {
			wanted[agent] = true
		}
	}
	h.all = slices.Sorted(maps.Keys(names))
	same := map[string]int{}
	for agent := range wanted {
		var able []string
		for _, name := range h.all {
			if about := living[name]; about != nil && about.goesOnWith(agent, "") {
				able = append(able, name)
			}
		}
		if len(able) == len(h.all) {
			continue
		}
		text := strings.Join(able, "\x00")
		n, known := same[text]
		if !known {
			n = len(h.able)
			same[text], h.able = n, append(h.able, able)
		}
		h.groups[agent] = n
	}
	return h
}

// turn returns how many others come before this process for a thread of the agent that lost has left.
func (h *heirs) turn(lost string, key store.ThreadKey, agent string) int {
	able := h.all
	if n, known := h.groups[agent]; known && len(h.able[n]) > 0 {
		able = h.able[n]
	}
	return h.before(able, lost, key.Tenant, key.Thread)
}

// soonest returns how many others come before this process for the thread at least, whatever agent it
// has.
func (h *heirs) soonest(lost string, key store.ThreadKey) int {
	least := h.before(h.all, lost, key.Tenant, key.Thread)
	for _, able := range h.able {
		least = min(least, h.before(able, lost, key.Tenant, key.Thread))
	}
	return least
}

// watches reports whether this process is one of those that look again and again at what an owner has
// left.
func (h *heirs) watches(lost string) bool { return h.before(h.all, lost, lost) < watchers }

// watchers is how many processes do that.
const watchers = 2

// before returns how many of the processes are heavier than this one; all of them if it is none of
// them. The one that is lost does not count.
func (h *heirs) before(processes []string, lost string, names ...string) int {
	own, n, is := weight(h.process, names), 0, false
	for _, other := range processes {
		switch {
		case other == h.process:
			is = true
		case other != lost && weight(other, names) > own:
			n++
		}
	}
	if !is {
		return len(processes)
	}
	return n
}

// weight follows from the names.
func weight(process string, names []string) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(process))
	for _, name := range names {
		_, _ = sum.Write([]byte{0})
		_, _ = sum.Write([]byte(name))
	}
	// The last bytes have hardly moved the first bits yet.
	x := sum.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x
}
