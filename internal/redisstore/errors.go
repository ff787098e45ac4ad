package redisstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// failed wraps an error from Redis with what was tried. Deadlines and cancellations
// can still be recognized, and so can a Redis that answers but does not write.
func failed(what string, err error) error {
	if notNow(err) {
		err = refusing{err}
	}
	return fmt.Errorf("%s: redis: %w", what, err)
}

// refusing is an [store.ErrRefused] that has the text of Redis.
type refusing struct{ error }

func (refusing) Is(target error) bool { return target == store.ErrRefused }

func (r refusing) Unwrap() error { return r.error }

// notNow reports whether Redis has answered that it writes nothing at the moment. Before
// Redis 7 what a script has met stands inside the text.
func notNow(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	if redis.IsMaxClientsError(err) {
		return true
	}
	for _, word := range []string{"OOM", "READONLY", "MISCONF", "NOREPLICAS", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN"} {
		if text := reply.Error(); strings.HasPrefix(text, word+" ") || strings.Contains(text, ": -"+word+" ") {
			return true
		}
	}
	return false
}

// join is [errors.Join] for the errors of one pipeline, whose commands often fail for the
// same reason: each is there once.
func join(errs ...error) error {
	var said []string
	var all []error
	for _, err := range errs {
		if err == nil {
			continue
		}
		// In a script, Redis appends which one, and where.
		cause, _, _ := strings.Cut(err.Error(), " script: ")
		if !slices.Contains(said, cause) {
			said, all = append(said, cause), append(all, err)
		}
	}
	return errors.Join(all...)
}
