package storetest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-agents/holdfast/offline"
	"github.com/holdfast-agents/holdfast/store"
)

// announced is a store in front of another one: it says when a thread begins, and leaves
// everything else to the store behind it.
type announced struct {
	store.Store
	begins func(thread store.ThreadKey, user string)
}

// Commit implements [store.Committer]. Only a thread's first commit expects the number 1
// and no ETag.
func (a announced) Commit(ctx context.Context, c *store.Commit) error {
	err := a.Store.Commit(ctx, c)
	if err == nil && c.Expect == (store.Position{Next: 1}) {
		a.begins(c.Key, c.User)
	}
	return err
}

// Durability implements [store.Durable], which is not a part of [store.Store]: a store
// in front of another one has to pass it on.
func (a announced) Durability(ctx context.Context) (store.Durability, error) {
	if d, ok := a.Store.(store.Durable); ok {
		return d.Durability(ctx)
	}
	return store.Durability{Level: store.LevelNone}, nil
}

// open opens the store in a folder.
func open(path string, begins func(store.ThreadKey, string)) (store.Store, error) {
	behind, err := offline.Open(offline.Location{URL: path, Create: true})
	if err != nil {
		return nil, err
	}
	return announced{behind, begins}, nil
}

// A store of your own: it implements [store.Store], here with the help of one that comes
// with Holdfast.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	db, err := open(filepath.Join(dir, "threads"), func(thread store.ThreadKey, user string) {
		fmt.Println(user, "begins", thread)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()

	// The commits of a server when somebody starts a thread. A program sets Config.OpenStore
	// of package server, and never commits by itself.
	err = db.Commit(context.Background(), &store.Commit{
		Key: store.ThreadKey{
			Tenant: "acme",
			Thread: "t1",
		},
		ID:        "c1",
		Expect:    store.Position{Next: 1},
		User:      "alice",
		UpdatedAt: time.Now(),
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// alice begins acme/t1
}
