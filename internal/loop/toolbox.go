package loop

import (
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

// The tools of an agent: its own, and those of its toolsets, which may change while the
// server runs. A run has those that there were when it began, or was continued, in this
// process; and a call that it was continued with waits for a tool that is not there yet,
// because the process that made the call had it. What is made of a list is made once, so
// that a run with a thousand tools begins as fast as one without.

// toolbox is the tools of an agent at one time. It does not change.
type toolbox struct {
	byName map[string]holdfast.Tool
	// specs are those of the tools by name. It is clipped, so that appending makes a copy.
	specs []holdfast.ToolSpec
	// lists are the toolsets' lists that it was made of.
	lists [][]holdfast.Tool
}

// toolboxes has the tools of one agent.
type toolboxes struct {
	agent *holdfast.Agent
	log   *slog.Logger

	newest atomic.Pointer[toolbox]
	mu     sync.Mutex // one makes a new one at a time
}

// now returns the tools as they are now.
func (t *toolboxes) now() *toolbox {
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
func (t *toolboxes) lists(before *toolbox) [][]holdfast.Tool {
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
func (b *toolbox) has(lists [][]holdfast.Tool) bool {
	return slices.EqualFunc(b.lists, lists, func(x, y []holdfast.Tool) bool {
		return len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
	})
}

// fill makes a toolbox. Of two tools of one name the agent's own is taken, then that of the
// toolset that is listed first.
func (t *toolboxes) fill(lists [][]holdfast.Tool) *toolbox {
	box := &toolbox{byName: make(map[string]holdfast.Tool, len(t.agent.Tools)), lists: lists}
	for i, list := range append([][]holdfast.Tool{t.agent.Tools}, lists...) {
		for _, tool := range list {
			spec := tool.Spec()
			if _, taken := box.byName[spec.Name]; taken || spec.Name == "" {
				t.log.Warn("a tool is left out: it has no name, or another has it",
					"agent", t.agent.Name, "toolset", i-1, "tool", spec.Name)
				continue
			}
			box.byName[spec.Name] = tool
			box.specs = append(box.specs, spec)
		}
	}
	slices.SortStableFunc(box.specs, byName)
	box.specs = slices.Clip(box.specs)
	return box
}

// late is a toolset whose tools may not be there yet after the process has started.
type late interface {
	// AwaitTool waits until the tool is there, or it is clear that it does not come soon. It
	// returns at once if the name cannot be that of one of its tools.
	AwaitTool(ctx context.Context, name string) error
}

// await waits for a tool that is not there.
func (t *toolboxes) await(ctx context.Context, name string) {
	for i, set := range t.agent.Toolsets {
		l, ok := set.(late)
		if !ok {
			continue
		}
		if err := routine.Caught(func() error { return l.AwaitTool(ctx, name) }); err != nil && ctx.Err() == nil {
			t.log.Warn("a tool with an open call is not there",
				"agent", t.agent.Name, "toolset", i, "tool", name, "error", err)
		}
		if _, there := t.now().byName[name]; there {
			return
		}
	}
}

// runTools are the tools of a run. Only the run's goroutine changes them.
type runTools struct{ atomic.Pointer[toolbox] }

// find returns a tool, and whether there is one of the name.
func (t *runTools) find(name string) (holdfast.Tool, bool) {
	tool, there := t.Load().byName[name]
	return tool, there
}

// spec returns the specification of a tool; the zero one of a tool that is not there.
func (t *runTools) spec(name string) holdfast.ToolSpec { return t.Load().spec(name) }

// add adds the tools that came late, if the one with the name is among them. None is taken
// away: there may be calls to it.
func (t *runTools) add(newest *toolbox, name string) {
	if _, came := newest.byName[name]; !came {
		return
	}
	old := t.Load()
	all := &toolbox{byName: maps.Clone(newest.byName), specs: slices.Clone(newest.specs), lists: newest.lists}
	for _, spec := range old.specs {
		if _, there := all.byName[spec.Name]; !there {
			all.byName[spec.Name] = old.byName[spec.Name]
			all.specs = append(all.specs, spec)
		}
	}
	slices.SortStableFunc(all.specs, byName)
	all.specs = slices.Clip(all.specs)
	t.Store(all)
}

// spec returns the specification of a tool; the zero one of a tool that is not there.
func (b *toolbox) spec(name string) holdfast.ToolSpec {
	if tool, there := b.byName[name]; there {
		return tool.Spec()
	}
	return holdfast.ToolSpec{}
}

// intend adds the intent of a call to a commit, with what its tool declares. A call that is to be
// handed out has none: before anybody gets it, its token is stored.
func (b *toolbox) intend(c *store.Commit, key string, call *thread.Call, h *thread.History, i thread.Intent) {
	spec := b.spec(call.Name)
	if spec.Outside != nil {
		return
	}
	i.Effect, i.InDoubt = spec.Effect, spec.InDoubt
	thread.PutIntent(c, key, call, h, i)
}
