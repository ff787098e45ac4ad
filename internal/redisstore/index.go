package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// The Index role. A list is a sorted set of threads; a member has its place in the list, too, so
// that a thread which moves in a list has two members until the head has moved, and the removal
// of the first never hits the second. Readers ask the heads, and remove members that are wrong
// and whose commit is not on the way.

// Find implements [store.Index].
func (s *Store) Find(ctx context.Context, q store.Query) ([]store.Found, error) {
	if q.Limit <= 0 {
		return nil, nil
	}
	if q.Name == store.ListOwned {
		return s.directory.ownedBy(ctx, q)
	}
	f := newFinding(s.client, s.keys, q)
	f.confirm = func(members []listed) ([]store.Found, error) {
		return s.directory.confirmListed(ctx, q.List, members)
	}
	if err := f.run(ctx); err != nil {
		return nil, failed("read the list "+q.Name, err)
	}
	slices.SortFunc(f.found, func(a, b store.Found) int {
		if q.Newest {
			a.At, b.At = b.At, a.At
		}
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Key.Tenant, b.Key.Tenant),
			cmp.Compare(a.Key.Thread, b.Key.Thread))
	})
	return f.found[:min(len(f.found), q.Limit)], nil
}

// removeWithin is how long the removal of wrong members may take.
const removeWithin = 5 * time.Second

// confirmListed returns the members that the heads confirm, and removes wrong ones.
func (s *directory) confirmListed(
	ctx context.Context, list store.List, members []listed,
) (found []store.Found, err error) {
	if len(members) == 0 {
		return nil, nil
	}
	replies, err := s.listingsOf(ctx, members)
	if err != nil {
		return nil, err
	}
	var wrong []listed
	for i, m := range members {
		tag, at, _ := cutPlace(m.member)
		key, ok := parseTag(tag)
		if !ok {
			continue
		}
		listings, err := s.listingsIn(key, replies[i].Val())
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			continue // damaged, or newer; it is left as it is
		}
		hint := claim{process: m.set, tag: m.member, score: m.score}
		if slices.Contains(listings, store.Listing{List: list, At: at}) {
			s.hints.trust(hint)
			found = append(found, store.Found{Key: key, At: at})
			continue
		}
		raw, _ := replies[i].Val()[1].(string)
		if s.hints.doubt(hint, raw, s.clock.Stamp()) {
			wrong = append(wrong, m)
		}
	}
	s.removeListed(ctx, list, wrong)
	return found, nil
}

// listingsOf asks for the lists that the heads of members say.
func (s *directory) listingsOf(ctx context.Context, members []listed) ([]*redis.SliceCmd, error) {
	pipe := s.client.Pipeline()
	replies := make([]*redis.SliceCmd, len(members))
	for i, m := range members {
		tag, _, _ := cutPlace(m.member)
		replies[i] = pipe.HMGet(ctx, s.keys.thread(tag), fieldLayout, "h", fieldListings)
	}
	_, err := pipe.Exec(ctx)
	return replies, err
}

// removeListed removes members that are wrong. A commit may have put a thread in that very place since its head
// was read, so the heads are asked again, and what they confirm now is entered again. Anything that this fails to
// remove is removed the next time.
func (s *directory) removeListed(ctx context.Context, list store.List, wrong []listed) {
	if len(wrong) == 0 {
		return
	}
	// A reader that goes away must not leave this half done.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeWithin)
	defer cancel()
	pipe := s.client.Pipeline()
	for _, m := range wrong {
		pipe.ZRem(ctx, m.set, m.member)
	}
	_, _ = pipe.Exec(ctx) // it may have removed some
	replies, err := s.listingsOf(ctx, wrong)
	if err != nil {
		return
	}
	again := s.client.Pipeline()
	for i, m := range wrong {
		tag, at, _ := cutPlace(m.member)
		key, _ := parseTag(tag)
		listings, err := s.listingsIn(key, replies[i].Val())
		if err == nil && slices.Contains(listings, store.Listing{List: list, At: at}) {
			again.ZAddNX(ctx, m.set, redis.Z{Score: float64(m.score), Member: m.member})
		}
	}
	_, _ = again.Exec(ctx)
}

// listingsIn reads the lists that a thread is in from the fields f, h and j of its hash.
func (s *directory) listingsIn(key store.ThreadKey, fields []any) ([]store.Listing, error) {
	if _, err := decodeHead(key, fields); err != nil {
		return nil, err
	}
	framed, there := fields[2].(string)
	if !there {
		return nil, nil
	}
	raw, err := s.values.decode(key, "", listingsName, framed)
	if err != nil {
		return nil, err
	}
	return decodeListings(raw)
}

// ownedBy returns the threads of one process.
func (s *directory) ownedBy(ctx context.Context, q store.Query) ([]store.Found, error) {
	set, err := s.client.ZRangeWithScores(ctx, s.keys.owned(q.Group), 0, -1).Result()
	if err != nil {
		return nil, failed("list owned threads", err)
	}
	claims := make([]claim, 0, len(set))
	for _, z := range set {
		key, ok := parseTag(member(z))
		if ok && (q.Only == nil || q.Only(key)) {
			claims = append(claims, claim{process: q.Group, tag: member(z), score: int64(z.Score)})
		}
	}
	mend := s.client.Pipeline()
	owned, err := s.confirmOwned(ctx, claims, mend)
	if err != nil {
		return nil, err
	}
	_, _ = mend.Exec(ctx)
	var found []store.Found
	for _, o := range owned {
		if o.Process == q.Group && len(found) < q.Limit {
			found = append(found, store.Found{Key: o.Key})
		}
	}
	return found, nil
}

// Owners implements [store.Index]. Those that live are not looked at, except for the one whose lease
// ends first.
func (s *Store) Owners(ctx context.Context) ([]store.Owner, error) { return s.owners.list(ctx) }

// Everybody implements [store.Index].
func (s *Store) Everybody(ctx context.Context, tenant string, before time.Time, limit int) ([]store.Head, error) {
	list := s.keys.everybody(tenant)
	return s.directory.dated(ctx, &list, before, limit)
}

// Mend implements [store.Index].
func (s *Store) Mend(ctx context.Context, key store.ThreadKey) (int, error) {
	tag := tag(key)
	fields, err := s.client.HMGet(ctx, s.keys.thread(tag), fieldLayout, "h", fieldListings, fieldParent).Result()
	if err != nil {
		return 0, failed("read thread "+key.String(), err)
	}
	head, err := decodeHead(key, fields)
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	listings, err := s.directory.listingsIn(key, fields)
	if err != nil {
		return 0, err
	}
	parent, _ := fields[3].(string)
	wanted := s.directory.wanted(head, listings, parent)
	pipe := s.client.Pipeline()
	replies := make([]*redis.FloatCmd, len(wanted))
	for i, w := range wanted {
		replies[i] = pipe.ZScore(ctx, w.key, member(w.Z))
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return 0, failed("look for thread "+key.String()+" in lists", err)
	}
	missing := 0
	err = s.replicas.announce(ctx, func(pipe redis.Pipeliner) (cmds []redis.Cmder) {
		for i, w := range wanted {
			if errors.Is(replies[i].Err(), redis.Nil) {
				missing++
				cmds = append(cmds, pipe.ZAddNX(ctx, w.key, w.Z))
			}
		}
		return cmds
	})
	if err != nil {
		return 0, failed("list thread "+key.String(), err)
	}
	if s.directory.written.newest() { // it is in the others now
		owner := holdfast.Principal{Tenant: key.Tenant, User: head.User}
		err = s.client.ZRem(ctx, s.keys.active(owner), key.Thread).Err()
	}
	if err != nil {
		return missing, failed("take thread "+key.String()+" off an early list", err)
	}
	return missing, nil
}

// Listed implements [store.Index].
func (s *Store) Listed(ctx context.Context, key store.ThreadKey) ([]store.Listing, error) {
	fields, err := s.client.HMGet(ctx, s.keys.thread(tag(key)), fieldLayout, "h", fieldListings).Result()
	if err != nil {
		return nil, failed("read thread "+key.String(), err)
	}
	return s.directory.listingsIn(key, fields)
}

// want is a member that a set should have.
type want struct {
	key string
	redis.Z
}

// mended is added to the score of a hint that a thread is owned, if another process than the owner may write it: no
// two hints of one set have the same score.
const mended = 0.5

// wanted returns all members that should be there for a thread.
func (s *directory) wanted(h *store.Head, listings []store.Listing, parent string) []want {
	tag, minute := tag(h.Key), minuteOf(h.UpdatedAt)
	owner := holdfast.Principal{Tenant: h.Key.Tenant, User: h.User}
	all := s.dates(owner, h.Key.Thread, minute)
	if h.Process != "" {
		all = append(all, want{s.keys.leases(), redis.Z{Score: 1, Member: h.Process}}, want{s.keys.owned(h.Process),
			redis.Z{Score: float64(s.hints.score(s.clock.Stamp().Time())) + mended, Member: tag}})
	}
	if parent != "" {
		all = append(all, want{s.keys.children(store.ThreadKey{Tenant: h.Key.Tenant, Thread: parent}),
			redis.Z{Member: h.Key.Thread}})
	}
	for _, l := range listings {
		all = append(all, want{s.keys.list(l), listingMember(tag, l)})
	}
	return all
}

// Progress implements [store.Index].
func (s *Store) Progress(ctx context.Context, put []byte) ([]byte, error) {
	if len(put) > store.MaxProgress {
		return nil, fmt.Errorf("progress of %d bytes: %w", len(put), store.ErrInvalid)
	}
	if put != nil {
		if err := s.client.Set(ctx, s.keys.progress(), put, 0).Err(); err != nil {
			return nil, failed("write the progress of the index", err)
		}
		return put, nil
	}
	got, err := s.client.Get(ctx, s.keys.progress()).Bytes()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, failed("read the progress of the index", err)
	}
	return got, nil
}
