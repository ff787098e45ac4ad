package filestore

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
	"github.com/holdfast-agents/holdfast/internal/frame"
	"github.com/holdfast-agents/holdfast/internal/storekit"
	"github.com/holdfast-agents/holdfast/store"
)

// The Index role. The lists are written in the batch of the commit that changes them, so they are
// exact; only a version that knew no index can have left one wrong.

// Find implements [store.Index].
func (s *Store) Find(ctx context.Context, q store.Query) ([]store.Found, error) {
	if q.Name == store.ListOwned {
		return s.ownedBy(ctx, q)
	}
	var found []store.Found
	err := s.committer.view(ctx, func(v view) error {
		f := finding{v: v, q: q, prefix: listPrefix(q.List)}
		damage, err := f.run()
		found = f.found
		return cmp.Or(err, damage)
	})
	return found, err
}

// finding is one call of Find.
type finding struct {
	v      view
	q      store.Query
	prefix []byte
	found  []store.Found
	sorted int // found[sorted:] are at the same place
}

// run reads the list until there is enough.
func (f *finding) run() (damage, err error) {
	if f.q.Limit <= 0 {
		return nil, nil
	}
	first, last := f.prefix, end(f.prefix)
	if !f.q.Since.IsZero() {
		first = appendPlace(slices.Clip(f.prefix), f.q.Since.Add(time.Millisecond-1))
	}
	if !f.q.Before.IsZero() {
		last = appendPlace(slices.Clip(f.prefix), f.q.Before.Add(time.Millisecond-1))
	}
	if f.q.Newest {
		err = f.v.descend(first, last, f.add)
	} else {
		damage, err = f.v.ascendPast(f.prefix, first, func(k, value []byte) (bool, error) {
			if last != nil && slices.Compare(k, last) >= 0 {
				return false, nil
			}
			return f.add(k, value)
		})
	}
	f.sort()
	f.found = f.found[:min(len(f.found), f.q.Limit)]
	return damage, err
}

// add adds what a key says, if the thread confirms it. It returns false when there is enough.
func (f *finding) add(k, value []byte) (bool, error) {
	at := placeIn(k[len(f.prefix):])
	if len(f.found) > f.sorted && !f.found[f.sorted].At.Equal(at) {
		f.sort()
		if len(f.found) >= f.q.Limit {
			return false, nil
		}
	}
	r := reader{b: value}
	key := store.ThreadKey{Tenant: r.name(), Thread: string(r.b)}
	if r.err != nil {
		return true, r.err
	}
	number, err := f.v.find(key)
	if err != nil || number != placeOf(k) {
		return true, err
	}
	listings, err := f.v.listings(number)
	if err != nil {
		return true, err
	}
	if slices.Contains(listings, store.Listing{List: f.q.List, At: at}) {
		f.found = append(f.found, store.Found{Key: key, At: at})
	}
	return true, nil
}

// sort orders those at the same place by their names.
func (f *finding) sort() {
	slices.SortFunc(f.found[f.sorted:], func(a, b store.Found) int {
		return cmp.Or(cmp.Compare(a.Key.Tenant, b.Key.Tenant), cmp.Compare(a.Key.Thread, b.Key.Thread))
	})
	f.sorted = len(f.found)
}

// ownedBy returns the threads of one process. There are as many as processes can run here.
func (s *Store) ownedBy(ctx context.Context, q store.Query) ([]store.Found, error) {
	owned, err := s.Owned(ctx)
	if err != nil {
		return nil, err
	}
	var found []store.Found
	for _, o := range owned {
		if o.Process == q.Group && (q.Only == nil || q.Only(o.Key)) && len(found) < q.Limit {
			found = append(found, store.Found{Key: o.Key})
		}
	}
	return found, nil
}

// Everybody implements [store.Index].
func (s *Store) Everybody(ctx context.Context, tenant string, before time.Time, limit int) ([]store.Head, error) {
	return s.recent(ctx, tenantPrefix(tenant), before, limit, func(value []byte) (store.ThreadKey, string, error) {
		r := reader{b: value}
		user := r.name()
		return store.ThreadKey{Tenant: tenant, Thread: string(r.b)}, user, r.err
	})
}

// Owners implements [store.Index].
func (s *Store) Owners(ctx context.Context) ([]store.Owner, error) {
	owned, err := s.Owned(ctx)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, o := range owned {
		names[o.Process] = true
	}
	s.leases.mu.Lock()
	for process := range s.leases.until {
		names[process] = true
	}
	s.leases.mu.Unlock()
	owners := make([]store.Owner, 0, len(names))
	for process := range names {
		lease, err := s.Lease(ctx, process)
		if err != nil {
			return nil, err
		}
		owners = append(owners, store.Owner{Process: process, Lease: lease})
	}
	return owners, nil
}

// Mend implements [store.Index].
func (s *Store) Mend(ctx context.Context, key store.ThreadKey) (int, error) {
	m := &mending{key: key}
	if err := s.committer.submit(ctx, m); err != nil {
		return 0, err // the committer may still be at work on it
	}
	return len(m.missing), nil
}

// mending enters a thread where it is missing.
type mending struct {
	key     store.ThreadKey
	missing map[string][]byte
}

func (m *mending) bytes() int { return 0 }

func (m *mending) tell(*storekit.Waiters) {}

// check finds what is missing.
func (m *mending) check(t *txn) error {
	m.missing = map[string][]byte{}
	th, err := t.thread(m.key)
	if err != nil {
		return err
	}
	if th == nil {
		return errAlready
	}
	wanted := entriesOf(m.key, th.number, &th.head.Head)
	listings, err := t.listingsOf(th)
	if err != nil {
		return err
	}
	for _, l := range listings {
		wanted[string(listKey(l, th.number))] = fullName(m.key)
	}
	for k, value := range wanted {
		there, err := t.has([]byte(k))
		if err != nil {
			return err
		}
		if !there {
			m.missing[k] = value
		}
	}
	if len(m.missing) == 0 {
		return errAlready
	}
	return nil
}

func (m *mending) write(t *txn) error {
	for k, value := range m.missing {
		if err := t.set([]byte(k), value); err != nil {
			return err
		}
	}
	return nil
}

// entriesOf returns what the lists have of a thread that follows from its head.
func entriesOf(key store.ThreadKey, number uint64, h *store.Head) map[string][]byte {
	minute := minuteOf(h.UpdatedAt)
	entries := map[string][]byte{
		string(activeKey(holdfast.Principal{Tenant: key.Tenant, User: h.User}, minute, number)): []byte(key.Thread),
		string(tenantKey(key.Tenant, minute, number)): tenantValue(key,
			h.User),
	}
	if h.Process != "" {
		entries[string(ownedKey(number))] = append(appendName(appendName(nil, key.Tenant), key.Thread), h.Process...)
	}
	return entries
}

// Listed implements [store.Index].
func (s *Store) Listed(ctx context.Context, key store.ThreadKey) (listings []store.Listing, err error) {
	err = s.read(ctx, key, func(v view, thread uint64) (err error) {
		listings, err = v.listings(thread)
		return err
	})
	return listings, err
}

// Progress implements [store.Index].
func (s *Store) Progress(ctx context.Context, put []byte) (got []byte, err error) {
	if len(put) > store.MaxProgress {
		return nil, fmt.Errorf("progress of %d bytes: %w", len(put), store.ErrInvalid)
	}
	if put != nil {
		return put, s.committer.submit(ctx, noting{put})
	}
	err = s.committer.view(ctx, func(v view) error {
		_, err := v.with(metaKey(metaProgress), func(value []byte) error {
			got = slices.Clone(value)
			return nil
		})
		return err
	})
	return got, err
}

// noting keeps the progress of the walk that fills the index.
type noting struct{ progress []byte }

func (n noting) bytes() int { return len(n.progress) }

func (noting) tell(*storekit.Waiters) {}

func (noting) check(*txn) error { return nil }

func (n noting) write(t *txn) error { return t.set(metaKey(metaProgress), n.progress) }

// list puts the thread into the lists that the commit names, and takes it out of the others.
func (c *commit) list(t *txn) error {
	if c.Listings == nil {
		return nil
	}
	now := make([]store.Listing, len(c.Listings))
	for i, l := range c.Listings {
		now[i] = store.Listing{List: l.List, At: toMilli(l.At)}
	}
	was, err := t.listingsOf(c.thread)
	if err != nil {
		return err
	}
	for _, l := range was {
		if !slices.Contains(now, l) {
			if err := t.remove(listKey(l, c.thread.number)); err != nil {
				return err
			}
		}
	}
	for _, l := range now {
		if !slices.Contains(was, l) {
			if err := t.set(listKey(l, c.thread.number), fullName(c.Key)); err != nil {
				return err
			}
		}
	}
	c.thread.listings = &now
	if slices.Equal(was, now) {
		return nil
	}
	if len(now) == 0 {
		return t.remove(sectionKey(c.thread.number, sectionListings))
	}
	return t.set(sectionKey(c.thread.number, sectionListings), encodeListings(now))
}

// listingsOf returns the lists that a thread is in, from memory if possible.
func (t *txn) listingsOf(th *thread) ([]store.Listing, error) {
	if th.listings == nil {
		listings, err := t.listings(th.number)
		if err != nil {
			return nil, err
		}
		th.listings = &listings
	}
	return *th.listings, nil
}

// listings reads the lists that a thread is in.
func (v view) listings(thread uint64) (listings []store.Listing, err error) {
	_, err = v.with(sectionKey(thread, sectionListings), func(value []byte) error {
		listings, err = decodeListings(value)
		return err
	})
	return listings, err
}

func encodeListings(listings []store.Listing) []byte {
	b := binary.AppendUvarint(nil, uint64(len(listings)))
	for _, l := range listings {
		b = appendName(appendName(appendName(b, l.Name), l.Tenant), l.Group)
		b = binary.AppendVarint(b, l.At.UnixMilli())
	}
	return binary.LittleEndian.AppendUint32(b, frame.Sum(b))
}

func decodeListings(b []byte) ([]store.Listing, error) {
	end := len(b) - 4
	if end < 0 || binary.LittleEndian.Uint32(b[end:]) != frame.Sum(b[:end]) {
		return nil, folder.ErrDamaged
	}
	r := reader{b: b[:end]}
	var listings []store.Listing
	for n := r.uvarint(); n > 0 && r.err == nil; n-- {
		l := store.Listing{List: store.List{Name: r.name(), Tenant: r.name(), Group: r.name()}}
		l.At = time.UnixMilli(r.varint()).UTC()
		listings = append(listings, l)
	}
	return listings, r.err
}

// toMilli is the time as the index keeps it.
func toMilli(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()).UTC() }
