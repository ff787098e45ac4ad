package simulate

import (
	"context"
	"fmt"

	"github.com/holdfast-agents/holdfast/store"
)

// The requests of users to work on threads that do not run.

// keeping adds what users can have done to threads at a server.
func (o *options) keeping(s *server) {
	at := " at " + s.name
	if o.w.plan.extras.forks && len(o.w.forks) < maxForks {
		for _, id := range o.w.plan.ids() {
			if o.w.lacks(id) {
				continue
			}
			o.add("a user forks "+id+at, 4, func() { s.fork(id, 0) })
			o.add("a user forks what "+id+" was"+at, 4, func() { s.fork(id, 2) })
		}
	}
	if !o.w.plan.extras.keepers {
		return
	}
	for _, id := range o.w.ids() {
		path, of := "/threads/"+id, " "+id+at
		o.asked(s, "a user marks"+of, 0.3, &request{
			method: "POST", path: path + "/checkpoints", body: map[string]any{"label": "a mark"},
		})
		o.asked(s, "a user prunes"+of, 0.1,
			&request{method: "POST", path: path + "/prune", body: map[string]any{"keep": 1}})
		o.asked(s, "a user deletes"+of, 0.1, &request{method: "DELETE", path: path})
		if o.w.plan.extras.rewinds {
			o.add("a user rewinds"+of, 0.5, func() { s.rewind(id) })
		}
		o.asked(s, "a user lists the runs of"+of, 0.1, &request{method: "GET", path: path + "/runs"})
		o.asked(s, "a user reads"+of, 0.1, &request{method: "GET", path: path + "/messages"})
	}
	o.asked(s, "a user has old checkpoints deleted"+at, 0.1, &request{
		method: "POST", path: "/maintenance/delete-older-than", body: map[string]any{"olderThan": "1s"},
	})
	o.asked(s, "a user has inactive threads deleted"+at, 0.05, &request{
		method: "POST", path: "/maintenance/delete-inactive", body: map[string]any{"threshold": "2s"},
	})
	o.asked(s, "a user lists the threads"+at, 0.1, &request{method: "GET", path: "/threads"})
}

// asked adds a request that is no client's.
func (o *options) asked(s *server, name string, weight float64, r *request) {
	o.add(name, weight, func() {
		s.task(func(ctx context.Context, task string) {
			o.w.fact("%s (%s): %s", task, name, s.ask(ctx, r, nil))
		})
	})
}

// maxForks is how many forks there are.
const maxForks = 2

// fork begins another thread where one stands, or was at a checkpoint, so many back. The
// fork has a client of its own.
func (s *server) fork(id string, back int) {
	w := s.world
	name := fmt.Sprintf("f%d", len(w.forks)+1)
	to := map[string]any{"threadId": name}
	if back > 0 {
		listed, err := w.base.Values(context.Background(), keyOf(id), store.KindCheckpoint, "", back)
		if err != nil || len(listed) == 0 {
			return
		}
		to["checkpointId"] = listed[len(listed)-1].ID
	}
	w.forks = append(w.forks, name)
	c := &client{world: w, name: fmt.Sprintf("c%d", len(w.clients)+1), thread: name}
	w.clients = append(w.clients, c)
	r := &request{method: "POST", path: "/threads/" + id + "/fork", body: to}
	s.task(func(ctx context.Context, task string) {
		w.fact("%s has forked %s to %s: %s", task, id, name, s.ask(ctx, r, nil))
	})
}

// rewind takes a thread back to its newest checkpoint but one.
func (s *server) rewind(id string) {
	w := s.world
	listed, err := w.base.Values(context.Background(), keyOf(id), store.KindCheckpoint, "", 2)
	if err != nil || len(listed) == 0 {
		return
	}
	r := &request{
		method: "POST", path: "/threads/" + id + "/rewind",
		body: map[string]any{"checkpointId": listed[len(listed)-1].ID},
	}
	w.mu.Lock()
	w.truth.of(id).rewound = true
	w.mu.Unlock()
	s.task(func(ctx context.Context, name string) {
		w.fact("%s has rewound %s: %s", name, id, s.ask(ctx, r, nil))
	})
}
