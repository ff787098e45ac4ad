package redisstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
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
	if notNow(err) {
		err = refusing{err}
	}
	return fmt.Errorf("%s: redis: %w", what, err)
}

// refusing is an [store.ErrRefused] that has the text of Redis.
type refusing struct{ error }

func (refusing) Is(target error) bool { return target == store.ErrRefused }

func (r refusing) Unwrap() error { return r.error }

// notNow reports whether Redis has answered that it writes nothing at the moment; a node of a
// cluster may also go on to send us to another one while a slot moves. Before Redis 7 what a
// script has met stands inside the text.
func notNow(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	if redis.IsMaxClientsError(err) {
		return true
	}
	for _, word := range []string{"OOM", "READONLY", "MISCONF", "NOREPLICAS", "LOADING", "MASTERDOWN", "CLUSTERDOWN",
		"TRYAGAIN", "ASK", "MOVED"} {
		if text := reply.Error(); strings.HasPrefix(text, word+" ") || strings.Contains(text, ": -"+word+" ") {
			return true
		}
	}
	return false
}

// wrongType reports whether a key does not have the type that a command expects.
func wrongType(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.Contains(reply.Error(), "WRONGTYPE ")
}

// brief is an error in one line that says nothing twice: with Sentinel, go-redis says of each
// of them why it does not answer.
type brief struct{ error }

func (b brief) Error() string {
	var said []string
	for line := range strings.Lines(b.error.Error()) {
		line = strings.TrimSpace(line)
		if !slices.ContainsFunc(said, func(before string) bool { return strings.HasSuffix(before, line) }) {
			said = append(said, line)
		}
	}
	return strings.Join(said, "; ")
}

func (b brief) Unwrap() error { return b.error }

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
