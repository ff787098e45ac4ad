package connection

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
)

// A server may start before Redis does, or while Redis loads its data, for example when
// their machine reboots. So a store that is opened waits for Redis, but not for what waiting
// does not change.

// attempt bounds one try to reach Redis, so that an address that swallows everything is
// noticed, and said, before the patience is over.
const attempt = 2 * time.Second

// Reach waits until ping succeeds, for as long as patience; without patience it tries once.
// It logs that it waits, and that the wait is over.
func Reach(ctx context.Context, ping func(context.Context) error, patience time.Duration, log *slog.Logger) error {
	begun := time.Now()
	pause := 50 * time.Millisecond
	for first := true; ; first = false {
		tried, cancel := context.WithTimeout(ctx, attempt)
		err := ping(tried)
		cancel()
		if err != nil {
			err = Brief(err)
		}
		left := patience - time.Since(begun)
		switch {
		case err == nil && first:
			return nil
		case err == nil:
			log.Info("Redis answers", "after", time.Since(begun).Round(time.Millisecond))
			return nil
		case left <= 0 || Final(err):
			return unreachable(err, patience)
		case first:
			log.Warn("waiting for Redis", "for", patience, "error", err)
		}
		select {
		case <-ctx.Done():
			return unreachable(err, patience)
		case <-time.After(min(pause, left)):
		}
		pause = min(2*pause, time.Second)
	}
}

// unreachable is the error of a Redis that could not be reached.
func unreachable(err error, patience time.Duration) error {
	var few UnacknowledgedError
	var forbidden NoWaitError
	var file *fs.PathError
	switch {
	case errors.As(err, &file):
		return fmt.Errorf("cannot reach Redis: %w; --redis-password-file must name a file that this process can read",
			err)
	case errors.As(err, &few):
		return fmt.Errorf("a first write: %w; start them, ask for fewer (failover:N), or choose another durability",
			err)
	case errors.As(err, &forbidden):
		return fmt.Errorf("durability failover: %w; allow this user the command WAIT (ACL SETUSER … +wait), or "+
			"choose another durability", err)
	case redis.IsLoadingError(err):
		return fmt.Errorf("cannot reach Redis: %w; it has been loading for %s: start again "+
			"when it has loaded its data", err, patience)
	case Final(err):
		return fmt.Errorf("cannot reach Redis: %w; are the address, the user and the password right?", err)
	}
	return fmt.Errorf("cannot reach Redis: %w; is it running, and is the address right?", err)
}
