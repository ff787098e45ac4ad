package redisstore

import (
	"context"
	"slices"

	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// Finding threads in a list: the sets that it is divided into are read as one.

// listed is a member of a list.
type listed struct {
	set, member string
	score       int64
}

// finding is one call of Find. It merges the sets that the list is divided into, and asks the heads of no
// more members than it needs.
type finding struct {
	client redis.UniversalClient
	q      store.Query
	// confirm returns the members that the heads confirm.
	confirm func(members []listed) ([]store.Found, error)
	parts   []*part
	found   []store.Found
	has     map[store.Found]bool // those in found
	// last is the score of the last member that was looked at; begun says that there is one.
	last  int64
	begun bool
}

// part is one of the sets that may have what is looked for.
type part struct {
	cursor
	left []listed // what was read of it and not looked at, in its order
}

func newFinding(client redis.UniversalClient, k keys, q store.Query) *finding {
	f := &finding{client: client, q: q, has: map[store.Found]bool{}}
	keys := k.asked(q)
	by := redis.ZRangeBy{Count: int64(q.Limit/len(keys) + 16)}
	by.Min, by.Max = scores(q)
	for _, key := range keys {
		f.parts = append(f.parts, &part{cursor: cursor{key: key, newest: q.Newest, rest: by}})
	}
	return f
}

// run finds enough, and all of those at the last one's place.
func (f *finding) run(ctx context.Context) error {
	for {
		if err := f.read(ctx); err != nil {
			return err
		}
		next := f.next()
		if len(next) == 0 {
			return nil
		}
		found, err := f.confirm(next)
		if err != nil {
			return err
		}
		for _, one := range found {
			if !f.has[one] { // a build that divided lists in another way may have entered it elsewhere
				f.has[one] = true
				f.found = append(f.found, one)
			}
		}
	}
}

// read reads a page of each part of which nothing is left, until there is something or the part is done.
func (f *finding) read(ctx context.Context) error {
	for {
		pipe := f.client.Pipeline()
		empty := slices.DeleteFunc(slices.Clone(f.parts), func(p *part) bool { return p.done || len(p.left) > 0 })
		if len(empty) == 0 {
			return nil
		}
		for _, p := range empty {
			p.ask(ctx, pipe)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		for _, p := range empty {
			for _, z := range p.take() {
				if asks(f.q, member(z)) {
					p.left = append(p.left, listed{set: p.key, member: member(z), score: int64(z.Score)})
				}
			}
		}
	}
}

// next takes the members that come next, as far as is known and needed; none if there are enough.
func (f *finding) next() (members []listed) {
	for {
		p := f.first()
		if p == nil || len(f.found)+len(members) >= f.q.Limit && f.begun && p.left[0].score != f.last {
			return members
		}
		members, f.last, f.begun = append(members, p.left[0]), p.left[0].score, true
		if p.left = p.left[1:]; len(p.left) == 0 && !p.done {
			return members
		}
	}
}

// first returns the part with the member that comes first.
func (f *finding) first() (first *part) {
	for _, p := range f.parts {
		if len(p.left) > 0 && (first == nil || p.left[0].score < first.left[0].score != f.q.Newest) {
			first = p
		}
	}
	return first
}
