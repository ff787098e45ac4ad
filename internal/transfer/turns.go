package transfer

import (
	"context"
	"sync"

	"github.com/holdfast-agents/holdfast"
)

// turns lets a few have a turn at a time, and one of each user: a client that reads slowly
// holds up nobody but its own user.
type turns struct {
	room chan struct{} // has an element for each of those whose turn it is

	mu    sync.Mutex
	lines map[user]*line // of those who wait or have a turn
}

type user struct{ tenant, name string }

// line is where the requests of one user wait.
type line struct {
	first chan struct{} // has an element while one of them waits for room, or has a turn
	size  int
}

func newTurns(most int) *turns {
	return &turns{room: make(chan struct{}, most), lines: map[user]*line{}}
}

// take waits for a turn, which ends when done is called.
func (t *turns) take(ctx context.Context, who holdfast.Principal) (done func(), err error) {
	first, leave := t.join(user{who.Tenant, who.User})
	if err := enter(ctx, first); err != nil {
		leave()
		return nil, err
	}
	if err := enter(ctx, t.room); err != nil {
		<-first
		leave()
		return nil, err
	}
	return func() {
		<-t.room
		<-first
		leave()
	}, nil
}

// enter waits until there is room.
func enter(ctx context.Context, room chan struct{}) error {
	select {
	case room <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// join joins the line of a user, until leave is called.
func (t *turns) join(who user) (first chan struct{}, leave func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[who]
	if l == nil {
		l = &line{first: make(chan struct{}, 1)}
		t.lines[who] = l
	}
	l.size++
	return l.first, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if l.size--; l.size == 0 {
			delete(t.lines, who)
		}
	}
}
