package redisstore

import (
	"fmt"

	"github.com/holdfast-agents/holdfast/internal/redisstore/connection"
	"github.com/holdfast-agents/holdfast/store"
)

// errDamaged means that Redis holds something that no version of this package writes.
var errDamaged = fmt.Errorf("%w: damaged", store.ErrUnreadable)

// notFound is the error for a thread that does not exist.
func notFound(key store.ThreadKey) error {
	return fmt.Errorf("thread %s: %w", key, store.ErrNotFound)
}

// failed wraps an error from Redis with what was tried. Deadlines and cancellations
// can still be recognized, and so can a Redis that answers but does not write.
func failed(what string, err error) error {
	if connection.NotNow(err) {
		err = connection.Refusing(err)
	}
	return fmt.Errorf("%s: redis: %w", what, err)
}
