package storetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

// Random commands to two stores. compare_draw.go and compare_ledger.go draw the commands;
// what the stores return is compared here, as text.

// Compare runs random commands against a store and against a reference, and expects that
// nobody can tell one from the other: every command has the same result, reads of what it
// concerns agree after it, and all reads agree in the end. There are few names, ids,
// fences and times, so that commands often meet what earlier ones left.
//
// open and openReference return new, empty stores. A failure is shrunk to the shortest
// sequence of commands that shows it.
func Compare(t *testing.T, open, openReference func(t *testing.T) store.Store, opts Options) {
	t.Helper()
	rapid.Check(t, func(r *rapid.T) {
		p := &pair{
			T:         r,
			test:      t,
			one:       open(t),
			reference: openReference(t),
			reopen:    opts.Reopen,
			ends:      map[store.ThreadKey][]uint64{},
		}
		defer func() {
			if err := errors.Join(p.one.Close(), p.reference.Close()); err != nil {
				r.Errorf("Close: %v", err)
			}
		}()
		actions := map[string]func(*rapid.T){
			"commit":  p.commit,
			"retry":   p.retry,
			"post":    p.post,
			"delete":  p.delete,
			"read":    p.read,
			"list":    p.list,
			"reserve": p.reserve,
			"settle":  p.settle,
		}
		if opts.Reopen != nil {
			actions["reopen"] = p.reopenOne
		}
		r.Repeat(actions)
		p.observeAll(r)
	})
}

// pair is a store and its reference, which have received the same commands.
type pair struct {
	*rapid.T
	test           *testing.T
	one, reference store.Store
	reopen         func(t *testing.T, s store.Store) store.Store
	commits        []*store.Commit              // all that were tried
	ends           map[store.ThreadKey][]uint64 // the number of each commit's last record
	passed         time.Duration                // since ledgerStart
}

// same runs f on both stores and compares what it returns.
func (p *pair) same(r *rapid.T, what string, f func(s store.Store) (any, error)) {
	r.Helper()
	got, gotErr := f(p.one)
	want, wantErr := f(p.reference)
	if g, w := class(gotErr), class(wantErr); g != w {
		r.Fatalf("%s: error %v (%s), the reference has %v (%s)", what, gotErr, g, wantErr, w)
	}
	if g, w := show(got), show(want); wantErr == nil && g != w {
		r.Fatalf("%s:\n\t%.2000s\nthe reference has\n\t%.2000s", what, g, w)
	}
}

// class returns what callers can test an error for.
func class(err error) string {
	if err == nil {
		return "none"
	}
	for _, known := range []error{
		store.ErrNotFound, store.ErrFenced, store.ErrConflict, store.ErrCursor, store.ErrInvalid,
	} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "unknown"
}

// reopenOne reopens the store; more rarely than other commands, because it takes longer.
func (p *pair) reopenOne(r *rapid.T) {
	if rapid.IntRange(0, 3).Draw(r, "reopen?") == 0 {
		p.one = p.reopen(p.test, p.one)
		p.observeAll(r)
	}
}

func (p *pair) commit(r *rapid.T) {
	c := drawCommit(r, p)
	p.commits = append(p.commits, c)
	p.try(r, c)
}

// retry tries a commit again that was tried before, whatever the result was.
func (p *pair) retry(r *rapid.T) {
	if len(p.commits) == 0 {
		r.Skip("nothing was committed yet")
	}
	last := p.commits[max(0, len(p.commits)-3):]
	p.try(r, rapid.SampledFrom(last).Draw(r, "commit"))
}

// try makes the commit in both stores.
func (p *pair) try(r *rapid.T, c *store.Commit) {
	before, _ := p.reference.Head(p.test.Context(), c.Key)
	p.same(r, "Commit", func(s store.Store) (any, error) { return nil, s.Commit(p.test.Context(), c) })
	after, err := p.reference.Head(p.test.Context(), c.Key)
	if err == nil && (before == nil || before.Next != after.Next) && after.Next > 1 {
		p.ends[c.Key] = append(p.ends[c.Key], after.Next-1)
	}
	p.observe(r, c.Key)
}

// delete deletes a thread at its position, or tries to at another one.
func (p *pair) delete(r *rapid.T) {
	k := drawKey(r)
	at := drawPosition(r, p, k)
	p.same(r, "Delete", func(s store.Store) (any, error) { return nil, s.Delete(p.test.Context(), k, at) })
	if _, err := p.reference.Head(p.test.Context(), k); err != nil {
		delete(p.ends, k)
	}
	p.observe(r, k)
}

func (p *pair) post(r *rapid.T) {
	k := drawKey(r)
	item := store.InboxItem{ID: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(r, "id"), Data: drawData(r)}
	p.same(r, "Post", func(s store.Store) (any, error) { return nil, s.Post(p.test.Context(), k, item) })
	p.observe(r, k)
}

// read reads with arguments that the other methods do not use.
func (p *pair) read(r *rapid.T) {
	ctx, k := p.test.Context(), drawKey(r)
	limit := rapid.IntRange(0, 4).Draw(r, "limit")
	cursor := store.Cursor{
		Number: rapid.Uint64Range(0, 8).Draw(r, "number"),
		Tag:    rapid.SampledFrom(fences()).Draw(r, "fence").Tag(),
	}
	p.same(r, "Records", func(s store.Store) (any, error) { return s.Records(ctx, k, cursor, limit) })
	kind, id := drawKind(r), drawID(r)
	p.same(r, "Value", func(s store.Store) (any, error) { return s.Value(ctx, k, kind, id) })
	p.same(r, "Values", func(s store.Store) (any, error) { return s.Values(ctx, k, kind, id, limit) })
}

func (p *pair) list(r *rapid.T) {
	owner := holdfast.Principal{Tenant: drawTenant(r), User: drawUser(r)}
	before, limit := drawTime(r), rapid.IntRange(0, 4).Draw(r, "limit")
	p.same(r, "Threads", func(s store.Store) (any, error) {
		list, err := s.Threads(p.test.Context(), owner, before, limit)
		return heads(list), err
	})
}

// observe reads a thread that a command may have changed, and all lists.
func (p *pair) observe(r *rapid.T, k store.ThreadKey) {
	p.observeThread(r, k)
	p.observeLists(r)
}

// observeAll reads everything.
func (p *pair) observeAll(r *rapid.T) {
	for _, k := range threadKeys() {
		p.observeThread(r, k)
	}
	p.observeLists(r)
	for _, tenant := range tenants() {
		p.observeLedger(r, tenant)
	}
}

// observeThread reads everything of a thread.
func (p *pair) observeThread(r *rapid.T, k store.ThreadKey) {
	p.same(r, fmt.Sprintf("thread %q", k), func(s store.Store) (any, error) { return p.thread(s, k) })
}

// observeLists reads all lists of threads.
func (p *pair) observeLists(r *rapid.T) {
	for _, tenant := range tenants() {
		for _, user := range users() {
			owner := holdfast.Principal{Tenant: tenant, User: user}
			p.same(r, fmt.Sprintf("threads of %q/%q", tenant, user), func(s store.Store) (any, error) {
				list, err := s.Threads(p.test.Context(), owner, time.Time{}, 100)
				return heads(list), err
			})
		}
	}
	for _, k := range threadKeys() {
		p.same(r, fmt.Sprintf("children of %q", k), func(s store.Store) (any, error) {
			ids, err := s.Children(p.test.Context(), k, "", 10)
			return fmt.Sprintf("%q", ids), err
		})
	}
	p.same(r, "Walk", func(s store.Store) (any, error) { return p.walk(s) })
	p.same(r, "Owned", func(s store.Store) (any, error) {
		owned, err := s.Owned(p.test.Context())
		return sortOwned(owned), err
	})
	p.observeIndex(r)
}

// observeIndex reads all lists of the index.
func (p *pair) observeIndex(r *rapid.T) {
	for _, l := range lists() {
		q := store.Query{List: l, Newest: rapid.Bool().Draw(r, "newest"), Limit: 10}
		for _, since := range []time.Time{{}, drawTime(r)} {
			q.Since = since
			p.same(r, fmt.Sprintf("the list %+v", q), func(s store.Store) (any, error) {
				found, err := s.Find(p.test.Context(), q)
				return fmt.Sprintf("%q", found), err
			})
		}
	}
	for _, process := range []string{"p", "q"} {
		p.same(r, "threads of process "+process, func(s store.Store) (any, error) {
			found, err := s.Find(p.test.Context(), store.Query{List: store.Owned(process), Limit: 10})
			var keys []store.OwnedThread
			for _, f := range found {
				keys = append(keys, store.OwnedThread{Key: f.Key})
			}
			return sortOwned(keys), err
		})
	}
	for _, tenant := range tenants() {
		p.same(r, "threads of tenant "+tenant, func(s store.Store) (any, error) {
			list, err := s.Everybody(p.test.Context(), tenant, time.Time{}, 100)
			return heads(list), err
		})
	}
	for _, k := range threadKeys() {
		p.same(r, fmt.Sprintf("missing of %q", k), func(s store.Store) (any, error) {
			return s.Mend(p.test.Context(), k)
		})
	}
}

// walk returns all heads, in any order.
func (p *pair) walk(s store.Store) (any, error) {
	all := map[string]bool{}
	for after := ""; ; {
		list, next, err := s.Walk(p.test.Context(), after, 2)
		if err != nil {
			return nil, err
		}
		for _, h := range list {
			all[text(h)] = true
		}
		if after = next; after == "" {
			return fmt.Sprint(slices.Sorted(maps.Keys(all))), nil
		}
	}
}

// thread returns everything of a thread.
func (p *pair) thread(s store.Store, k store.ThreadKey) (any, error) {
	ctx := p.test.Context()
	head, err := s.Head(ctx, k)
	if err != nil {
		return nil, err
	}
	records, err1 := s.Records(ctx, k, store.Cursor{}, 1000)
	messages, err2 := s.Messages(ctx, k)
	var ids []string
	for _, m := range messages {
		ids = append(ids, m.ID)
	}
	slices.Reverse(ids)
	backwards, err6 := s.MessagesOf(ctx, k, ids)
	err2 = errors.Join(err2, err6)
	inbox, err3 := s.Inbox(ctx, k)
	size, err5 := s.Size(ctx, k)
	all := []any{
		text(*head),
		head.State,
		records,
		messages,
		backwards,
		inbox,
		fmt.Sprint(slices.Sorted(maps.Keys(size))),
	}
	err1 = errors.Join(err1, err5)
	for _, kind := range kinds() {
		values, err4 := s.Values(ctx, k, kind, "", 0)
		all, err1 = append(all, values), errors.Join(err1, err4)
	}
	return all, errors.Join(err1, err2, err3)
}
