package agents

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/routine"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// The tools of an agent: its own, and those of its toolsets, which may change while the server
// runs. A run has those that there were when it began, or was continued, in this process; and
// a call that it was continued with waits for a tool that is not there yet, because the
// process that made the call had it. Everything made of a list is made once, so that a run
// with a thousand tools begins as fast as one without.

// Toolbox is the tools of an agent at one time. It does not change.
type Toolbox struct {
	ByName map[string]holdfast.Tool
	// Specs are those of the tools by name. It is clipped, so that appending makes a copy.
	Specs []holdfast.ToolSpec
	// lists are the toolsets' lists that it was made of.
	lists [][]holdfast.Tool
}

// Toolboxes has the tools of one agent.
type Toolboxes struct {
	agent *holdfast.Agent
	log   *slog.Logger

	newest atomic.Pointer[Toolbox]
	mu     sync.Mutex // one makes a new one at a time
}

// Now returns the tools as they are now.
func (t *Toolboxes) Now() *Toolbox {
	if box := t.newest.Load(); box != nil && box.has(t.lists(box)) {
		return box
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.newest.Load()
	lists := t.lists(before)
	if before != nil && before.has(lists) {
		return before
	}
	box := t.fill(lists)
	t.newest.Store(box)
	return box
}

// lists reads the toolsets' lists. One that panics has the list that it had in before.
func (t *Toolboxes) lists(before *Toolbox) [][]holdfast.Tool {
	if len(t.agent.Toolsets) == 0 {
		return nil
	}
	lists := make([][]holdfast.Tool, len(t.agent.Toolsets))
	for i, set := range t.agent.Toolsets {
		err := routine.Caught(func() error { lists[i] = set.Tools(); return nil })
		if err == nil {
			continue
		}
		t.log.Error("a toolset cannot say which tools it has", "agent", t.agent.Name, "toolset", i, "error", err)
		if before != nil {
			lists[i] = before.lists[i]
		}
	}
	return lists
}

// has reports whether the toolbox was made of these very lists.
func (b *Toolbox) has(lists [][]holdfast.Tool) bool {
	return slices.EqualFunc(b.lists, lists, func(x, y []holdfast.Tool) bool {
		return len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
	})
}

// fill makes a toolbox. Of two tools of one name the agent's own is taken, then that of the
// toolset that is listed first.
func (t *Toolboxes) fill(lists [][]holdfast.Tool) *Toolbox {
	box := &Toolbox{ByName: make(map[string]holdfast.Tool, len(t.agent.Tools)), lists: lists}
	for i, list := range append([][]holdfast.Tool{t.agent.Tools}, lists...) {
		for _, tool := range list {
			spec := tool.Spec()
			if _, taken := box.ByName[spec.Name]; taken || spec.Name == "" {
				t.log.Warn("a tool is left out: it has no name, or another has it",
					"agent", t.agent.Name, "toolset", i-1, "tool", spec.Name)
				continue
			}
			box.ByName[spec.Name] = tool
			box.Specs = append(box.Specs, spec)
		}
	}
	SortSpecs(box.Specs)
	box.Specs = slices.Clip(box.Specs)
	return box
}

// SortSpecs sorts specifications by their names.
func SortSpecs(specs []holdfast.ToolSpec) {
	slices.SortStableFunc(specs, func(a, b holdfast.ToolSpec) int { return cmp.Compare(a.Name, b.Name) })
}

// late is a toolset whose tools may not be there yet after the process has started.
type late interface {
	// AwaitTool waits until the tool is there, or it is clear that it does not come soon. It
	// returns at once if the name cannot be that of one of its tools.
	AwaitTool(ctx context.Context, name string) error
}

// Await waits for a tool that is not there.
func (t *Toolboxes) Await(ctx context.Context, name string) {
	for i, set := range t.agent.Toolsets {
		l, ok := set.(late)
		if !ok {
			continue
		}
		if err := routine.Caught(func() error { return l.AwaitTool(ctx, name) }); err != nil && ctx.Err() == nil {
			t.log.Warn("a tool with an open call is not there",
				"agent", t.agent.Name, "toolset", i, "tool", name, "error", err)
		}
		if _, there := t.Now().ByName[name]; there {
			return
		}
	}
}

// RunTools are the tools of a run. Only the run's goroutine changes them.
type RunTools struct{ atomic.Pointer[Toolbox] }

// Find returns a tool, and whether there is one of the name.
func (t *RunTools) Find(name string) (holdfast.Tool, bool) {
	tool, there := t.Load().ByName[name]
	return tool, there
}

// Spec returns the specification of a tool; the zero one of a tool that is not there.
func (t *RunTools) Spec(name string) holdfast.ToolSpec { return t.Load().Spec(name) }

// Add adds the tools that came late, if the one with the name is among them. None is taken
// away: there may be calls to it.
func (t *RunTools) Add(newest *Toolbox, name string) {
	if _, came := newest.ByName[name]; !came {
		return
	}
	old := t.Load()
	all := &Toolbox{ByName: maps.Clone(newest.ByName), Specs: slices.Clone(newest.Specs), lists: newest.lists}
	for _, spec := range old.Specs {
		if _, there := all.ByName[spec.Name]; !there {
			all.ByName[spec.Name] = old.ByName[spec.Name]
			all.Specs = append(all.Specs, spec)
		}
	}
	SortSpecs(all.Specs)
	all.Specs = slices.Clip(all.Specs)
	t.Store(all)
}

// Spec returns the specification of a tool; the zero one of a tool that is not there.
func (b *Toolbox) Spec(name string) holdfast.ToolSpec {
	if tool, there := b.ByName[name]; there {
		return tool.Spec()
	}
	return holdfast.ToolSpec{}
}

// Intend adds the intent of a call to a commit, with what its tool declares. A call that is to be
// handed out has none: before anybody gets it, its token is stored.
func (b *Toolbox) Intend(c *store.Commit, key string, call *thread.Call, h *thread.History, i thread.Intent) {
	spec := b.Spec(call.Name)
	if spec.Outside != nil {
		return
	}
	i.Effect, i.InDoubt = spec.Effect, spec.InDoubt
	thread.PutIntent(c, key, call, h, i)
}
