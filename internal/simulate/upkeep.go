package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Operators describe threads, replace agents, call tools by hand, and look.

// describe gives the thread of a run a title.
func (s *server) describe(id string) {
	w := s.world
	s.task(func(ctx context.Context, name string) {
		t, err := s.engine.Current(ctx, alice, id)
		if err != nil || !t.State.Running() {
			w.fact("%s finds no run: %s", name, codeOf(err))
			return
		}
		text := "title " + name
		w.mu.Lock()
		one := &title{thread: id}
		w.truth.titles[text], w.truth.of(id).titled = one, true
		w.mu.Unlock()
		done, err := s.engine.Amend(ctx, t, thread.Amendment{Description: &threads.Description{Title: &text}})
		w.fact("%s has described %s: %t, %s", name, id, done, codeOf(err))
		w.describedAs(one, text, done, err)
	})
}

// describedAs takes in what came of a title.
func (w *World) describedAs(one *title, text string, done bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one.refused = err == nil && !done
	if done && !one.stored {
		w.violated("nothing acknowledged is lost", "the title %q of %s is", text, one.thread)
	}
}

// reload replaces the server's agents by those of the other revision.
func (s *server) reload() {
	s.variant.revision = map[string]string{"r1": "r2", "r2": "r1"}[s.variant.revision]
	set, err := s.engine.NewAgents(s.agents(), nil, nil)
	if err != nil {
		panic(err) // the agents are ours
	}
	s.unused = append(s.unused, s.engine.Use(set))
}

// callByHand calls a tool without a thread.
func (s *server) callByHand(arguments string) {
	s.task(func(ctx context.Context, name string) {
		_, started, err := owner.CallByHand(ctx, s.engine, owner.ByHand{Agent: "a", Call: holdfast.ToolCall{
			ID:        name,
			Key:       name,
			Name:      "look",
			Arguments: json.RawMessage(arguments),
			Principal: alice,
		}})
		s.world.fact("%s has called by hand: %t, %s", name, started, codeOf(err))
	})
}

// lookAt looks at a thread, and at the log of its run.
func (s *server) lookAt(id string) {
	w := s.world
	s.task(func(ctx context.Context, name string) {
		w.fact("%s finds it ready: %s", name, codeOf(s.engine.Ready(ctx)))
		t, err := s.engine.Current(ctx, alice, id)
		if err == nil {
			_, err = s.engine.ShownStates(ctx, t.Key, t.State)
		}
		if err != nil {
			w.fact("%s finds no states: %s", name, codeOf(err))
			return
		}
		page, err := owner.Log(ctx, s.engine, alice, id, t.State.Run(), store.Cursor{}, 100)
		w.fact("%s looks at %s: %s", name, t.State.Run(), codeOf(err))
		if err != nil {
			return
		}
		for frames := range page.Frames {
			for i := range frames {
				w.logged(id, &frames[i])
			}
		}
	})
}

// logged checks a frame of a log.
func (w *World) logged(id string, f *agui.Frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	cursor, err := store.ParseCursor(f.ID)
	if records, _ := w.truth.recordsTo(id, cursor); err != nil || records == nil {
		w.violated("durable before visible", "the log shows %s, which %s has not", f.ID, id)
	}
}

// checkEnd checks what must hold when everything has come to its end.
func (w *World) checkEnd() {
	if w.violation() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range slices.Sorted(maps.Keys(w.truth.titles)) {
		if one := w.truth.titles[text]; one.refused && one.stored {
			w.violated("what was refused is not done", "%s has the title %q", one.thread, text)
		}
	}
	if missing := w.truth.unlisted(w.base); missing != "" {
		w.violated("the index lists every thread", "%s", missing)
	}
	if kept := keptAgents(w.servers); kept != "" {
		w.violated("agents that were replaced are let go", "%s", kept)
	}
}

// keptAgents says which server keeps agents that it does not need; empty if none does.
func keptAgents(servers []*server) string {
	for _, s := range servers {
		if s.isDead() || s.stopping {
			continue
		}
		for i, unused := range s.unused {
			select {
			case <-unused:
			default:
				return fmt.Sprintf("%s keeps its %d.", s.name, i+1)
			}
		}
	}
	return ""
}

// unlisted compares the index with the threads, and says which one is not listed where it should
// be; empty if none is. There may be more in the index than there is.
func (t *truth) unlisted(base store.Store) string {
	ctx := context.Background()
	for _, id := range slices.Sorted(maps.Keys(t.threads)) {
		head, err := base.Head(ctx, keyOf(id))
		if err != nil {
			continue
		}
		st, err := thread.DecodeState(head.State)
		if err != nil {
			continue
		}
		for _, l := range listsOf(head, st) {
			found, err := base.Find(ctx, store.Query{List: l, Limit: 100})
			if err != nil || !slices.ContainsFunc(found, func(f store.Found) bool { return f.Key == head.Key }) {
				return fmt.Sprintf("%s is not in the list %q (%v)", id, l.Name, err)
			}
		}
	}
	return ""
}

// listsOf returns the lists in which a thread is to be.
func listsOf(head *store.Head, st *thread.State) (lists []store.List) {
	if head.Process != "" {
		lists = append(lists, store.Owned(head.Process))
	}
	lists = append(lists, thread.StatusLists(st.Status(), head.Key.Tenant, head.User)...)
	if goesOn(st, afterAll) {
		lists = append(lists, store.List{Name: store.ListDue})
	}
	return lists
}
