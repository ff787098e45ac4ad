package server

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// inspectTimeout bounds how long a store may take to say how durable it is.
const inspectTimeout = 10 * time.Second

// inspect asks the store what its commits survive, logs what operators should know,
// and refuses a store that evicts. A store that is not [store.Durable] has no
// level.
func inspect(cfg Config, db store.Store) (store.Level, error) {
	i, ok := db.(store.Durable)
	if !ok {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), inspectTimeout)
	defer cancel()
	d, err := i.Durability(ctx)
	if err != nil {
		return "", fmt.Errorf("look at how durable the store is: %w", err)
	}
	for _, note := range d.Notes {
		cfg.Log.Warn("what the store survives", "level", d.Level, "note", note)
	}
	switch {
	case d.Evicts && !cfg.AllowEviction:
		return "", fmt.Errorf("the store would discard threads when it is full: its eviction policy is %q; set it to "+
			"keep everything (in Redis: CONFIG SET maxmemory-policy noeviction, and the same in redis.conf), or "+
			"accept the loss with --allow-eviction (HOLDFAST_ALLOW_EVICTION=1, or Config.AllowEviction)", d.Policy)
	case d.Evicts:
		cfg.Log.Warn("the store may discard threads when it is full: eviction is allowed", "policy", d.Policy)
	}
	return d.Level, nil
}

// Durability returns what a commit survives, as the store said when it was opened;
// empty if the store is not [store.Durable].
func (s *Server) Durability() store.Level { return s.level }
