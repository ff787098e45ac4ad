package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/audit"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
)

// Functions that look into a store without a running server: open it, check it,
// inspect its threads, and tell which stored states an agent would have to migrate.

// StoreAt says where a store is, for tools that look into it without a server.
type StoreAt struct {
	// URL is a store as in [Config].Store, or the path of an embedded store's file.
	URL string
	// RedisPrefix is as in [Config].
	RedisPrefix string
	// Create makes the file if it does not exist.
	Create bool
}

// OpenStore opens a store without a server. It refuses a file that a server has open.
// The caller must close the store.
func OpenStore(at StoreAt) (store.Store, error) {
	cfg := Config{Store: at.URL, RedisPrefix: at.RedisPrefix}.withDefaults()
	switch {
	case at.URL == "":
		return nil, errors.New("no store is named: give a URL like redis://HOST:6379/0, or the path of a file")
	case strings.HasPrefix(at.URL, "memory:"):
		return nil, errors.New("a store in memory cannot be opened from outside: it exists only inside its server")
	case strings.Contains(at.URL, "://"):
		return openStore(cfg)
	}
	path := strings.TrimPrefix(at.URL, "bolt:")
	if _, err := os.Stat(path); err != nil && !at.Create {
		return nil, fmt.Errorf("there is no store at %s: %w", path, err)
	}
	cfg.Store = "bolt:" + path
	return openStore(cfg)
}

// LocalPrincipal is the one user that every caller is without Authenticate.
func LocalPrincipal() holdfast.Principal { return holdfast.Principal{Tenant: "default", User: "local"} }

// Problem is something wrong with a stored thread.
type Problem = audit.Problem

// Checked says what a check covered.
type Checked struct {
	// Threads is how many threads were checked, Problems how many problems were found.
	Threads, Problems int
	// Busy is how many threads kept changing and were left out.
	Busy int
}

// CheckStore checks the invariants of all threads of a store, or of a single one named
// by only, and calls found for each problem. It writes nothing.
func CheckStore(ctx context.Context, db store.Store, only *store.ThreadKey, found func(Problem)) (Checked, error) {
	var done Checked
	check := func(key store.ThreadKey) error {
		problems, err := audit.Check(ctx, db, key)
		switch {
		case errors.Is(err, store.ErrConflict):
			done.Busy++
			return nil
		case err != nil:
			return err
		}
		done.Threads++
		done.Problems += len(problems)
		for _, p := range problems {
			found(p)
		}
		return nil
	}
	if only != nil {
		return done, check(*only)
	}
	return done, eachThread(ctx, db, check)
}

// PendingMigration is a stored state that will be migrated when it is next read.
type PendingMigration = state.PendingMigration

// CheckStates finds the stored middleware states that must be migrated before these
// agents can continue the threads of a store, or a single one named by only: see
// [state.Schema.Migrations]. It calls found for each thread that has any. It writes
// nothing. Threads that cannot be read are left to [CheckStore].
func CheckStates(ctx context.Context, db store.Store, agents []holdfast.Agent, only *store.ThreadKey, found func(store.ThreadKey, []PendingMigration)) error {
	schemas, err := thread.Schemas(agents)
	if err != nil {
		return err
	}
	look := func(key store.ThreadKey) error {
		needs, err := audit.Migrations(ctx, db, key, schemas)
		if err == nil && len(needs) > 0 {
			found(key, needs)
		}
		return ctx.Err()
	}
	if only != nil {
		return look(*only)
	}
	return eachThread(ctx, db, look)
}

// StoredStates returns the middleware states of a thread's newest checkpoint, with
// nothing redacted, for tools and tests that read them with their keys. A thread
// without a checkpoint has none.
func StoredStates(ctx context.Context, store store.Store, key store.ThreadKey) (*state.States, error) {
	return audit.StoredStates(ctx, store, key)
}

// Summary is a one-line description of a thread.
type Summary = audit.Summary

// InspectStore describes every thread of a store. It writes nothing.
func InspectStore(ctx context.Context, db store.Store, each func(*Summary)) error {
	return eachThread(ctx, db, func(key store.ThreadKey) error {
		s, err := audit.Summarize(ctx, db, key)
		if err == nil {
			each(s)
		}
		return err
	})
}

// Inspection is a thread in a form that people can read.
type Inspection = audit.Inspection

// InspectedMessage is a message of a history.
type InspectedMessage = audit.InspectedMessage

// InspectThread describes one thread as it is now or, if checkpoint is not empty, as it
// was at that checkpoint. It writes nothing. Of a damaged thread it shows what can be
// read.
func InspectThread(ctx context.Context, store store.Store, key store.ThreadKey, checkpoint string) (*Inspection, error) {
	return audit.Inspect(ctx, store, key, checkpoint)
}

// eachThread calls f once for each thread. A thread that is deleted in the meantime is
// left out.
func eachThread(ctx context.Context, db store.Store, f func(store.ThreadKey) error) error {
	seen := map[store.ThreadKey]bool{}
	after := ""
	for {
		heads, next, err := db.Walk(ctx, after, 100)
		if err != nil {
			return fmt.Errorf("list the threads: %w", err)
		}
		for i := range heads {
			key := heads[i].Key
			if seen[key] {
				continue
			}
			seen[key] = true
			if err := f(key); err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
		if next == "" {
			return nil
		}
		after = next
	}
}
