package simulate

import "context"

// Users who change the shared state of threads that do not run.

// shared adds what users can do to the shared state of threads.
func (o *options) shared(s *server) {
	if !o.w.plan.extras.states {
		return
	}
	for _, id := range o.w.ids() {
		at := " of " + id + " at " + s.name
		o.add(0.3, func() { s.patch(id, false, true) }, "a user changes the state", at)
		o.add(0.3, func() { s.patch(id, true, true) }, "a user merges into the state", at)
		if !s.variant.without { // which would not know what fits
			o.add(0.1, func() { s.patch(id, true, "text") }, "a user changes the state wrongly", at)
		}
	}
}

// patch adds a member to the shared state of a thread, with a merge patch or another one.
func (s *server) patch(id string, merges bool, value any) {
	w := s.world
	s.task(func(ctx context.Context, name string) {
		r := &request{method: "PATCH", path: "/threads/" + id + "/state", kind: "application/json-patch+json"}
		r.body = []map[string]any{{"op": "add", "path": "/" + name, "value": value}}
		if merges {
			r.kind, r.body = "application/merge-patch+json", map[string]any{name: value}
		}
		lives := w.lives(id)
		code := s.ask(ctx, r, nil)
		w.fact("%s has changed the state of %s: %s", name, id, code)
		if code != "ok" {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if k := w.truth.of(id); len(w.truth.former[id]) == lives { // nobody has deleted it since
			k.docs.marks[name] = true
			for _, v := range k.docs.marked() {
				w.violated(v.Promise, "%s: %s", id, v.Detail)
			}
		}
	})
}

// lives returns how often a thread has been deleted.
func (w *World) lives(id string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.truth.former[id])
}
