package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/store"
)

// filled returns a store with threads that have run: t0, t1 and so on.
func filled(t *testing.T, threads int) store.Store {
	t.Helper()
	db := memstore.New()
	c := config(t)
	c.OpenStore = func() (store.Store, error) { return db, nil }
	s, err := server.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(s.Handler())
	defer front.Close()
	for n := range threads {
		post(t, front.URL, fmt.Sprint("t", n), "hi")
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

func localKey(thread string) store.ThreadKey {
	return store.ThreadKey{Tenant: server.LocalPrincipal().Tenant, Thread: thread}
}

// odd is a store whose threads change while they are read.
type odd struct {
	store.Store
	gone, busy string
	heads      int
}

func (o *odd) Head(ctx context.Context, key store.ThreadKey) (*store.Head, error) {
	if key.Thread == o.gone {
		return nil, store.ErrNotFound
	}
	h, err := o.Store.Head(ctx, key)
	if err == nil && key.Thread == o.busy {
		o.heads++
		h.ETag = fmt.Sprint(o.heads)
	}
	return h, err
}

// Walk returns the first page twice, as it may.
func (o *odd) Walk(ctx context.Context, after string, limit int) ([]store.Head, string, error) {
	if after == "" {
		heads, _, err := o.Store.Walk(ctx, "", limit)
		return heads, "again", err
	}
	return o.Store.Walk(ctx, "", limit)
}

// TestCheckStore: every thread is checked once, and threads that are deleted or written
// in the meantime are not reported as problems.
func TestCheckStore(t *testing.T) {
	db := filled(t, 5)
	got, err := server.CheckStore(t.Context(), &odd{Store: db, gone: "t1", busy: "t2"}, nil, func(p server.Problem) { t.Errorf("%+v", p) })
	if err != nil || got != (server.Checked{Threads: 3, Busy: 1}) {
		t.Errorf("%+v, %v", got, err)
	}
	head, err := db.Head(t.Context(), localKey("t3"))
	if err != nil {
		t.Fatal(err)
	}
	c := &store.Commit{Key: head.Key, ID: "damage", Expect: head.Position(), User: head.User, Fence: head.Fence, UpdatedAt: head.UpdatedAt, State: []byte("[")}
	if err := db.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	var found []string
	note := func(p server.Problem) { found = append(found, p.Key.Thread+" "+p.What) }
	got, err = server.CheckStore(t.Context(), db, nil, note)
	if err != nil || got != (server.Checked{Threads: 5, Problems: 1}) || !slices.Equal(found, []string{"t3 head_unreadable"}) {
		t.Errorf("%+v, %v, %q", got, err, found)
	}
	key := localKey("t0")
	if got, err = server.CheckStore(t.Context(), db, &key, note); err != nil || got.Threads != 1 || got.Problems != 0 {
		t.Errorf("one thread: %+v, %v", got, err)
	}
	key = localKey("nope")
	if _, err = server.CheckStore(t.Context(), db, &key, note); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an unknown thread: %v", err)
	}
}

// TestInspectStore: all threads are listed, and each can be inspected.
func TestInspectStore(t *testing.T) {
	store := filled(t, 2)
	var got []string
	err := server.InspectStore(t.Context(), store, func(s *server.Summary) {
		got = append(got, fmt.Sprintf("%s %s %s %d", s.Key, s.User, s.Status, s.Messages))
	})
	slices.Sort(got)
	if want := []string{"default/t0 local idle 2", "default/t1 local idle 2"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	in, err := server.InspectThread(t.Context(), store, localKey("t1"), "")
	if err != nil || len(in.History) != 2 || in.History[1].Text != "hello" || in.Bytes == 0 {
		t.Errorf("%+v, %v", in, err)
	}
}

// TestOpenStore: a store is named by a URL or a path, and opening one that does not
// exist does not create it.
func TestOpenStore(t *testing.T) {
	path := t.TempDir() + "/x.db"
	for _, url := range []string{path, "bolt:" + path} {
		if _, err := server.OpenStore(server.StoreAt{URL: url}); err == nil || !strings.Contains(err.Error(), "there is no store at "+path) {
			t.Errorf("%s: %v", url, err)
		}
	}
	db, err := server.OpenStore(server.StoreAt{URL: path, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.OpenStore(server.StoreAt{URL: path}); !errors.Is(err, store.ErrStoreLocked) {
		t.Errorf("opened twice: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	for _, url := range []string{"", "bolt:"} {
		if _, err := server.OpenStore(server.StoreAt{URL: url, Create: true}); err == nil {
			t.Errorf("%q was opened", url)
		}
	}
}
