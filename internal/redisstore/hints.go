package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// PutHint implements [store.Hints].
func (s *Store) PutHint(ctx context.Context, name string, data []byte, ttl time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := store.ValidateHint(name, data, ttl); err != nil {
		return err
	}
	// Rounded up: a hint must not be over before it is told.
	last := (ttl + time.Microsecond - 1).Microseconds()
	if _, err := s.scripts.run(ctx, s.scripts.putHint, []string{s.keys.hints()}, name, data, last,
		store.MaxHintAge.Milliseconds()); err != nil {
		return failed("write the hint "+strconv.Quote(name), err)
	}
	return nil
}

// Hints implements [store.Hints]. A hint that would last longer than any may is not ours, or
// comes from before the clock of Redis was put back.
func (s *Store) Hints(ctx context.Context) ([]store.Hint, error) {
	reply, err := s.scripts.hints.Run(ctx, s.client, []string{s.keys.hints()}).Slice()
	if err != nil {
		return nil, failed("read the hints", err)
	}
	if len(reply) != 2 {
		return nil, fmt.Errorf("read the hints: redis answers %v: %w", reply, errDamaged)
	}
	now, err := strconv.ParseInt(fmt.Sprint(reply[0]), 10, 64)
	fields, isList := reply[1].([]any)
	if err != nil || !isList || len(fields)%2 != 0 {
		return nil, fmt.Errorf("read the hints: redis answers %v: %w", reply, errDamaged)
	}
	var all []store.Hint
	for n := 0; n < len(fields); n += 2 {
		name, _ := fields[n].(string)
		value, _ := fields[n+1].(string)
		number, data, found := strings.Cut(value, ":")
		until, err := strconv.ParseInt(number, 10, 64)
		left := time.Duration(until-now) * time.Microsecond
		if !found || err != nil || until <= now || until-now > store.MaxHintAge.Microseconds() {
			continue
		}
		all = append(all, store.Hint{Name: name, Data: []byte(data), Left: left})
	}
	return all, nil
}
