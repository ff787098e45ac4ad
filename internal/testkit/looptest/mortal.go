package looptest

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// Mortal is a store as one process sees it. When it is dead, it answers nothing.
type Mortal struct {
	store.Store
	Dead atomic.Bool // set by the test
}

// Commit implements [store.Committer] until the store is dead.
func (m *Mortal) Commit(ctx context.Context, c *store.Commit) error {
	if m.Dead.Load() {
		return ErrUnreachable
	}
	return m.Store.Commit(ctx, c)
}

// Announce renews the lease until the store is dead.
func (m *Mortal) Announce(ctx context.Context, process string, ttl time.Duration) error {
	if m.Dead.Load() {
		return ErrUnreachable
	}
	return m.Store.Announce(ctx, process, ttl)
}

// Retire ends the lease unless the store is dead.
func (m *Mortal) Retire(ctx context.Context, process string) error {
	if m.Dead.Load() {
		return ErrUnreachable
	}
	return m.Store.Retire(ctx, process)
}

// AgreeFormat implements [store.FormatKeeper] until the store is dead. If the store keeps no
// format, it is what the process reads.
func (m *Mortal) AgreeFormat(ctx context.Context, process string, terms store.FormatTerms) (store.Formats, error) {
	keeper, can := m.Store.(store.FormatKeeper)
	switch {
	case m.Dead.Load():
		return store.Formats{}, ErrUnreachable
	case can:
		return keeper.AgreeFormat(ctx, process, terms)
	}
	return store.Formats{Write: terms.Reads}, nil
}

// Formats implements [store.FormatKeeper].
func (m *Mortal) Formats(ctx context.Context) (store.Formats, error) {
	if keeper, can := m.Store.(store.FormatKeeper); can {
		return keeper.Formats(ctx)
	}
	return store.Formats{}, nil
}

// Describe implements [store.Roster] until the store is dead.
func (m *Mortal) Describe(ctx context.Context, process string, about []byte) error {
	roster, can := m.Store.(store.Roster)
	switch {
	case m.Dead.Load():
		return ErrUnreachable
	case can:
		return roster.Describe(ctx, process, about)
	}
	return nil
}

// Described implements [store.Roster].
func (m *Mortal) Described(ctx context.Context) (map[string][]byte, error) {
	if roster, can := m.Store.(store.Roster); can {
		return roster.Described(ctx)
	}
	return nil, nil
}

// HandOver hands a thread over unless the store is dead.
func (m *Mortal) HandOver(ctx context.Context, process string, key store.ThreadKey) error {
	if m.Dead.Load() {
		return ErrUnreachable
	}
	return m.Store.HandOver(ctx, process, key)
}

// ErrUnreachable is the error of a dead store.
var ErrUnreachable = fmt.Errorf("unreachable: %w", net.ErrClosed)
