package simulate

import (
	"context"
	"fmt"
	"strings"

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
			o.add(4, func() { o.play.fork(s, id, 0) }, "a user forks ", id, at)
			o.add(4, func() { o.play.fork(s, id, 2) }, "a user forks what ", id, " was", at)
		}
	}
	if !o.w.plan.extras.keepers {
		return
	}
	for _, id := range o.w.ids() {
		path := func(rest string) string { return "/threads/" + id + rest }
		o.asked(s, 0.3, func() *request {
			return &request{method: "POST", path: path("/checkpoints"), body: map[string]any{"label": "a mark"}}
		}, "a user marks ", id, at)
		o.asked(s, 0.1, func() *request {
			return &request{method: "POST", path: path("/prune"), body: map[string]any{"keep": 1}}
		}, "a user prunes ", id, at)
		o.asked(s, 0.1, func() *request { return &request{method: "DELETE", path: path("")} }, "a user deletes ", id,
			at)
		if o.w.plan.extras.rewinds {
			o.add(0.5, func() { s.rewind(id) }, "a user rewinds ", id, at)
		}
		o.asked(s, 0.1, func() *request { return &request{method: "GET", path: path("/runs")} },
			"a user lists the runs of ", id, at)
		o.asked(s, 0.1, func() *request { return &request{method: "GET", path: path("/messages")} }, "a user reads ",
			id, at)
	}
	o.asked(s, 0.1, func() *request {
		return &request{
			method: "POST", path: "/maintenance/delete-older-than", body: map[string]any{"olderThan": "1s"},
		}
	}, "a user has old checkpoints deleted", at)
	o.asked(s, 0.05, func() *request {
		return &request{
			method: "POST", path: "/maintenance/delete-inactive", body: map[string]any{"threshold": "2s"},
		}
	}, "a user has inactive threads deleted", at)
	o.asked(s, 0.1, func() *request { return &request{method: "GET", path: "/threads"} }, "a user lists the threads",
		at)
}

// asked adds a request that is no client's.
func (o *options) asked(s *server, weight float64, r func() *request, name ...string) {
	o.add(weight, func() {
		what := strings.Join(name, "")
		s.task(func(ctx context.Context, task string) {
			o.w.fact("%s (%s): %s", task, what, s.ask(ctx, r(), nil))
		})
	}, name...)
}

// maxForks is how many forks there are.
const maxForks = 2

// fork begins another thread where one stands, or was at a checkpoint, so many back. The
// fork has a client of its own.
func (p *schedule) fork(s *server, id string, back int) {
	w := p.world
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
	c := &client{world: w, name: fmt.Sprintf("c%d", len(p.clients)+1), thread: name}
	p.clients = append(p.clients, c)
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
	w.truth.rewinds[id], w.truth.of(id).rewound = true, true
	w.mu.Unlock()
	s.task(func(ctx context.Context, name string) {
		w.fact("%s has rewound %s: %s", name, id, s.ask(ctx, r, nil))
	})
}
