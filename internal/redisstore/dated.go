package redisstore

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// The lists of threads by their last activity: a tenant's, and a user's. Each is divided into spans of
// time, so that no key grows with all of the threads: a tenant's into days, a user's into spans of 30
// days. One more set has which spans there are. Until all servers write format 2, a user's threads are
// in one set besides, which the version before reads; what it alone has is read for good.

// dated is a list of a tenant's threads by the minutes of their last activity.
type dated struct {
	tenant string
	user   string
	all    bool   // it has the threads of all users
	spans  string // the key of the set of its spans
	days   int64  // how long a span is
}

// userSpan is how many days of a user's threads are in one set.
const userSpan = 30

// everybody is the list of a tenant's threads.
func (k keys) everybody(tenant string) dated {
	return dated{tenant: tenant, all: true, spans: k.days(tenant), days: 1}
}

// threadsOf is the list of a user's threads.
func (k keys) threadsOf(owner holdfast.Principal) dated {
	return dated{
		tenant: owner.Tenant,
		user:   owner.User,
		spans:  k.prefix + "spans:{" + url.QueryEscape(owner.Tenant) + "/" + url.QueryEscape(owner.User) + "}",
		days:   userSpan,
	}
}

// span has the threads of a list that were last active in one span.
func (k keys) span(d *dated, span int64) string {
	if d.all {
		return k.day(d.tenant, span)
	}
	return k.prefix + "span:{" + url.QueryEscape(d.tenant) + "/" + url.QueryEscape(d.user) + "/" +
		strconv.FormatInt(span, 10) + "}"
}

// of numbers the spans since 1970.
func (d *dated) of(minute int64) int64 {
	day := dayOf(minute)
	if day < 0 {
		day -= d.days - 1
	}
	return day / d.days
}

// has reports whether a thread is in the list, in that span.
func (d *dated) has(h *store.Head, span int64) bool {
	return (d.all || h.User == d.user) && d.of(minuteOf(h.UpdatedAt)) == span
}

// wanted are the members for a thread: the one in its span comes first; see forgetSpan.
func (d *dated) wanted(k keys, thread string, minute int64) [2]want {
	span := d.of(minute)
	return [2]want{
		{k.span(d, span), redis.Z{Score: float64(minute), Member: thread}},
		{d.spans, redis.Z{Score: float64(span), Member: strconv.FormatInt(span, 10)}},
	}
}

// dated reads a list, span by span.
func (s *directory) dated(ctx context.Context, d *dated, before time.Time, limit int) ([]store.Head, error) {
	by := &redis.ZRangeBy{Min: "-inf", Max: "+inf"}
	if !before.IsZero() {
		by.Max = strconv.FormatInt(d.of(minuteOf(before)), 10)
	}
	spans, err := s.client.ZRevRangeByScoreWithScores(ctx, d.spans, by).Result()
	if err != nil {
		return nil, failed("list threads", err)
	}
	var heads []store.Head
	for _, z := range spans {
		if len(heads) >= limit {
			break
		}
		span := int64(z.Score)
		found, err := s.recent(ctx, &listing{
			key:    s.keys.span(d, span),
			tenant: d.tenant,
			mine:   func(h *store.Head) bool { return d.has(h, span) },
		}, before, limit-len(heads))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			s.forgetSpan(ctx, d, z)
		}
		heads = append(heads, found...)
	}
	return heads[:min(len(heads), max(limit, 0))], nil
}

// dates returns the members that a thread has in the lists by last activity.
func (s *directory) dates(owner holdfast.Principal, thread string, minute int64) []want {
	own, every := s.keys.threadsOf(owner), s.keys.everybody(owner.Tenant)
	inOwn, inEvery := own.wanted(s.keys, thread, minute), every.wanted(s.keys, thread, minute)
	all := slices.Concat(inOwn[:], inEvery[:])
	if !s.written.newest() { // the version before reads no other
		all = append(all, want{s.keys.active(owner), redis.Z{Score: float64(minute), Member: thread}})
	}
	return all
}

// forgetSpan takes a span off the list of spans if it has had no thread for long. A commit puts its
// thread into the set of the span before it puts the span into the list: if it is under way, either
// the span is entered after it was taken off, or the set is not empty any more. Only the nodes of a
// cluster keep no order.
func (s *directory) forgetSpan(ctx context.Context, d *dated, span redis.Z) {
	set := s.keys.span(d, int64(span.Score))
	threads, err := s.client.Exists(ctx, set).Result()
	if err != nil || threads > 0 || !s.hints.doubt(claim{process: d.spans, tag: member(span),
		score: int64(span.Score)}, "", s.clock.Stamp()) {
		return
	}
	if s.client.ZRem(ctx, d.spans, span.Member).Err() != nil {
		return // the next reader does it
	}
	// A reader that is gone now leaves a span out, which the next thread of that span enters again.
	if threads, err = s.client.Exists(ctx, set).Result(); err != nil || threads > 0 {
		_ = s.client.ZAdd(ctx, d.spans, span).Err()
	}
}

// sortHeads orders threads, the last active first.
func sortHeads(heads []store.Head) {
	slices.SortFunc(heads, func(a, b store.Head) int {
		return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(a.Key.Thread, b.Key.Thread))
	})
}
