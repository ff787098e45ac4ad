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
)

// StoreAt says where a store is, for those who look into it without a server.
type StoreAt struct {
	// URL is as in [Config], or the path of an embedded store's file.
	URL         string
	RedisPrefix string
	// Create makes a file that is not there.
	Create bool
}

// OpenStore opens a store without a server. A file that a server has open is
// refused. The caller must close the store.
func OpenStore(at StoreAt) (holdfast.Store, error) {
	cfg := Config{Store: at.URL, RedisPrefix: at.RedisPrefix}.withDefaults()
	switch {
	case at.URL == "":
		return nil, errors.New("no store is named: give a URL like redis://HOST:6379/0, or the path of a file")
	case strings.HasPrefix(at.URL, "memory:"):
		return nil, errors.New("a store in memory has nothing to look at: it ends with its server")
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

// LocalPrincipal is who everybody is without Authenticate.
func LocalPrincipal() holdfast.Principal { return holdfast.Principal{Tenant: "default", User: "local"} }

// Problem is something about a stored thread that must not be.
type Problem = audit.Problem

// Checked says what a check has looked at.
type Checked struct {
	// Threads is how many threads were checked, Problems how many were found.
	Threads, Problems int
	// Busy is how many threads kept changing, and were left out.
	Busy int
}

// CheckStore checks what is always true of the threads of a store, or of one of them if
// only names it, and calls found for each problem. It writes nothing.
func CheckStore(ctx context.Context, store holdfast.Store, only *holdfast.ThreadKey, found func(Problem)) (Checked, error) {
	var done Checked
	check := func(key holdfast.ThreadKey) error {
		problems, err := audit.Check(ctx, store, key)
		switch {
		case errors.Is(err, holdfast.ErrConflict):
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
	return done, eachThread(ctx, store, check)
}

// PendingMigration is what a stored state needs before it is next read.
type PendingMigration = holdfast.PendingMigration

// CheckStates says what the stored states of middleware need before these agents can
// go on with the threads of a store, or with one of them if only names it: see
// [holdfast.Schema.Migrations]. It calls found for each thread that needs something.
// It writes nothing. A thread that cannot be read is left to [CheckStore].
func CheckStates(ctx context.Context, store holdfast.Store, agents []holdfast.Agent, only *holdfast.ThreadKey, found func(holdfast.ThreadKey, []PendingMigration)) error {
	schemas, err := thread.Schemas(agents)
	if err != nil {
		return err
	}
	look := func(key holdfast.ThreadKey) error {
		needs, err := audit.Migrations(ctx, store, key, schemas)
		if err == nil && len(needs) > 0 {
			found(key, needs)
		}
		return ctx.Err()
	}
	if only != nil {
		return look(*only)
	}
	return eachThread(ctx, store, look)
}

// StoredStates returns the states of the middleware as a thread's newest checkpoint
// holds them, with nothing redacted: for tools and tests that read them with their
// keys. A thread without a checkpoint has none.
func StoredStates(ctx context.Context, store holdfast.Store, key holdfast.ThreadKey) (*holdfast.States, error) {
	return audit.StoredStates(ctx, store, key)
}

// Summary is a thread in a line.
type Summary = audit.Summary

// InspectStore describes every thread of a store. It writes nothing.
func InspectStore(ctx context.Context, store holdfast.Store, each func(*Summary)) error {
	return eachThread(ctx, store, func(key holdfast.ThreadKey) error {
		s, err := audit.Summarize(ctx, store, key)
		if err == nil {
			each(s)
		}
		return err
	})
}

// Inspection is a thread as a person can read it.
type Inspection = audit.Inspection

// InspectedMessage is a message of a history.
type InspectedMessage = audit.InspectedMessage

// InspectThread describes one thread as it is or, if checkpoint is not empty, as it was
// then. It writes nothing, and shows what can be read of a damaged thread.
func InspectThread(ctx context.Context, store holdfast.Store, key holdfast.ThreadKey, checkpoint string) (*Inspection, error) {
	return audit.Inspect(ctx, store, key, checkpoint)
}

// eachThread calls f once for each thread. One that is deleted meanwhile is left out.
func eachThread(ctx context.Context, store holdfast.Store, f func(holdfast.ThreadKey) error) error {
	seen := map[holdfast.ThreadKey]bool{}
	after := ""
	for {
		heads, next, err := store.Walk(ctx, after, 100)
		if err != nil {
			return fmt.Errorf("list the threads: %w", err)
		}
		for i := range heads {
			key := heads[i].Key
			if seen[key] {
				continue
			}
			seen[key] = true
			if err := f(key); err != nil && !errors.Is(err, holdfast.ErrNotFound) {
				return err
			}
		}
		if next == "" {
			return nil
		}
		after = next
	}
}
