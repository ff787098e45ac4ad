package memstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// The Index role. Every answer is found by looking at all threads, so nothing can be missing.

// listingsOf returns the listings as a thread keeps them.
func listingsOf(c *store.Commit) []store.Listing {
	kept := slices.Clone(c.Listings)
	for i := range kept {
		kept[i].At = time.UnixMilli(kept[i].At.UnixMilli()).UTC()
	}
	return kept
}

// placeIn returns where a thread is in the list, and whether it is in it.
func (t *thread) placeIn(list store.List) (time.Time, bool) {
	if list.Name == store.ListOwned {
		return time.Time{}, list.Group != "" && list == store.Owned(t.head.Process)
	}
	at := slices.IndexFunc(t.listings, func(l store.Listing) bool { return l.List == list })
	if at < 0 {
		return time.Time{}, false
	}
	return t.listings[at].At, true
}

// Find implements [store.Index].
func (s *Store) Find(ctx context.Context, q store.Query) ([]store.Found, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []store.Found
	for key, t := range s.threads {
		if at, is := t.placeIn(q.List); is && !at.Before(q.Since) && (q.Before.IsZero() || at.Before(q.Before)) &&
			(q.Only == nil || q.Only(key)) {
			found = append(found, store.Found{Key: key, At: at})
		}
	}
	slices.SortFunc(found, func(a, b store.Found) int {
		if q.Newest {
			a.At, b.At = b.At, a.At
		}
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Key.Tenant, b.Key.Tenant),
			cmp.Compare(a.Key.Thread, b.Key.Thread))
	})
	return found[:min(len(found), max(q.Limit, 0))], nil
}

// Everybody implements [store.Index].
func (s *Store) Everybody(ctx context.Context, tenant string, before time.Time, limit int) ([]store.Head, error) {
	return s.recent(ctx, before, limit, func(h *store.Head) bool { return h.Key.Tenant == tenant })
}

// Owners implements [store.Index].
func (s *Store) Owners(ctx context.Context) ([]store.Owner, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	names := map[string]bool{}
	for process := range s.leases {
		names[process] = true
	}
	for _, t := range s.threads {
		names[t.head.Process] = true
	}
	delete(names, "")
	var owners []store.Owner
	for _, process := range slices.Sorted(maps.Keys(names)) {
		owners = append(owners, store.Owner{Process: process, Lease: s.lease(process)})
	}
	return owners, nil
}

// Mend implements [store.Index].
func (s *Store) Mend(ctx context.Context, _ store.ThreadKey) (int, error) { return 0, ctx.Err() }

// Listed implements [store.Index].
func (s *Store) Listed(ctx context.Context, key store.ThreadKey) (listings []store.Listing, err error) {
	err = s.read(ctx, key, func(t *thread) error {
		listings = slices.Clone(t.listings)
		return nil
	})
	return listings, err
}

// Progress implements [store.Index].
func (s *Store) Progress(ctx context.Context, put []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(put) > store.MaxProgress {
		return nil, fmt.Errorf("progress of %d bytes: %w", len(put), store.ErrInvalid)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if put != nil {
		s.progress = bytes.Clone(put)
	}
	return bytes.Clone(s.progress), nil
}
