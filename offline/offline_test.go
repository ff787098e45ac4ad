package offline_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/offline"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/store"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hello is an agent that says hello.
var hello = holdfast.Agent{
	Name: "a",
	Model: holdfast.ModelFunc(func(context.Context, *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			yield(holdfast.Delta{Text: "hello", Finish: holdfast.FinishStop}, nil)
		}
	}),
}

// filled returns a store with threads that the agent has run: t0, t1 and so on.
func filled(t *testing.T, agent holdfast.Agent, threads int) store.Store {
	t.Helper()
	db := memstore.New()
	s, err := server.New(server.Config{
		Agents: []holdfast.Agent{agent}, OpenStore: func() (store.Store, error) { return db, nil },
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n := range threads {
		for _, err := range s.Run(t.Context(), server.LocalPrincipal(),
			server.Input{Thread: fmt.Sprint("t", n), Text: "hi"}) {
			if err != nil {
				t.Fatal(err)
			}
		}
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
	newer      string
	heads      int
}

func (o *odd) Head(ctx context.Context, key store.ThreadKey) (*store.Head, error) {
	if key.Thread == o.gone {
		return nil, store.ErrNotFound
	}
	if key.Thread == o.newer {
		return nil, &store.VersionError{What: "the layout", Stored: 9, Known: 1}
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

// TestCheck: every thread is checked once, and threads that are deleted or written
// in the meantime are not reported as problems.
func TestCheck(t *testing.T) {
	db := filled(t, hello, 5)
	got, err := offline.Check(t.Context(), &odd{Store: db, gone: "t1", busy: "t2"}, nil, func(p offline.Problem) {
		t.Errorf("%+v", p)
	})
	if err != nil || got != (offline.Checked{Threads: 3, Busy: 1}) {
		t.Errorf("%+v, %v", got, err)
	}
	head, err := db.Head(t.Context(), localKey("t3"))
	if err != nil {
		t.Fatal(err)
	}
	c := &store.Commit{
		Key:       head.Key,
		ID:        "damage",
		Expect:    head.Position(),
		User:      head.User,
		Fence:     head.Fence,
		UpdatedAt: head.UpdatedAt,
		State:     []byte("["),
	}
	if err := db.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	var found []string
	note := func(p offline.Problem) { found = append(found, p.Key.Thread+" "+p.What) }
	got, err = offline.Check(t.Context(), db, nil, note)
	if err != nil || got != (offline.Checked{Threads: 5, Problems: 1}) ||
		!slices.Equal(found, []string{"t3 head_unreadable"}) {
		t.Errorf("%+v, %v, %q", got, err, found)
	}
	// So does one that only a newer version can read; the others are checked.
	found = nil
	got, err = offline.Check(t.Context(), &odd{Store: db, newer: "t1"}, nil, note)
	slices.Sort(found)
	if err != nil || got != (offline.Checked{Threads: 5, Problems: 2}) ||
		!slices.Equal(found, []string{"t1 version_too_new", "t3 head_unreadable"}) {
		t.Errorf("%+v, %v, %q", got, err, found)
	}
	if err := offline.List(t.Context(), &odd{Store: db, newer: "t1"}, func(s *offline.Summary) {
		if s.Key.Thread == "t1" && s.Status != "unreadable" {
			t.Errorf("it is listed as %+v", s)
		}
	}); err != nil {
		t.Error(err)
	}
	key := localKey("t0")
	if got, err = offline.Check(t.Context(), db, &key, note); err != nil || got.Threads != 1 || got.Problems != 0 {
		t.Errorf("one thread: %+v, %v", got, err)
	}
	key = localKey("nope")
	if _, err = offline.Check(t.Context(), db, &key, note); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an unknown thread: %v", err)
	}
}

// TestList: all threads are listed, and each can be inspected.
func TestList(t *testing.T) {
	store := filled(t, hello, 2)
	var got []string
	err := offline.List(t.Context(), store, func(s *offline.Summary) {
		got = append(got, fmt.Sprintf("%s %s %s %d", s.Key, s.User, s.Status, s.Messages))
	})
	slices.Sort(got)
	if want := []string{"default/t0 local idle 2", "default/t1 local idle 2"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	in, err := offline.Inspect(t.Context(), store, localKey("t1"), "")
	if err != nil || len(in.History) != 2 || in.History[1].Text != "hello" || in.Bytes == 0 {
		t.Errorf("%+v, %v", in, err)
	}
}

// TestOpen: a store is named by a URL or a path, and opening one that does not
// exist does not create it.
func TestOpen(t *testing.T) {
	path := t.TempDir() + "/data"
	for _, url := range []string{path, "file:" + path} {
		if _, err := offline.Open(offline.Location{URL: url}); err == nil ||
			!strings.Contains(err.Error(), "there is no store at "+path) {
			t.Errorf("%s: %v", url, err)
		}
	}
	db, err := offline.Open(offline.Location{URL: path, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := offline.Open(offline.Location{URL: path}); !errors.Is(err, store.ErrStoreLocked) {
		t.Errorf("opened twice: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	for _, url := range []string{"", "file:"} {
		if _, err := offline.Open(offline.Location{URL: url, Create: true}); err == nil {
			t.Errorf("%q was opened", url)
		}
	}
}
