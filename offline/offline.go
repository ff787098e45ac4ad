// Package offline looks into a store without a running server: it opens one, checks its
// threads and their states, describes, exports and imports them, and runs one again in a
// copy. It is what the commands check, inspect, export, import, replay and backup of the
// holdfast program are made of. Only [Import] writes to a store that is there.
package offline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/audit"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/internal/filestore"
	"github.com/holdfast-agents/holdfast/internal/operator"
	"github.com/holdfast-agents/holdfast/internal/stores"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
)

// Location says where a store is.
type Location struct {
	// URL is a store as in server.Config.Store, or the path of an embedded store's folder.
	URL string
	// RedisPrefix is the prefix of every key in Redis; default "hf:".
	RedisPrefix string
	// RedisPasswordFile is a file with the password of Redis, instead of the one in the URL.
	RedisPasswordFile string
	// Create makes an embedded store if it does not exist, and lets [Import] and [MendIndex] write
	// to it.
	// Without it, an embedded store is only read: not a byte of it changes.
	Create bool
}

// Open opens a store without a server. It refuses a folder that a server has open, with
// [store.ErrStoreLocked], and a store in memory, which exists only inside its server. The
// caller must close the store.
func Open(at Location) (store.Store, error) {
	o := stores.Options{
		RedisPrefix:       at.RedisPrefix,
		RedisPasswordFile: at.RedisPasswordFile,
		Now:               time.Now,
		Log:               slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	if strings.Contains(at.URL, "://") {
		return stores.Open(at.URL, o)
	}
	path, err := folder(at)
	if err != nil {
		return nil, err
	}
	o.ReadOnly = !at.Create
	return stores.Open("file:"+path, o)
}

// folder returns where the embedded store is.
func folder(at Location) (string, error) {
	kind, path, named := strings.Cut(at.URL, ":")
	switch {
	case at.URL == "":
		return "", errors.New("no store is named: give a URL like redis://HOST:6379/0, or the path of a folder")
	case named && kind == "memory":
		return "", errors.New("a store in memory cannot be opened from outside: it exists only inside its server")
	case !named || kind != "file":
		path = at.URL
	}
	if _, err := os.Stat(path); err != nil && !at.Create {
		return "", fmt.Errorf("there is no store at %s: %w", path, err)
	}
	return path, nil
}

// ErrRedis means that the store is in Redis, which Holdfast does not back up.
var ErrRedis = errors.New("a store in Redis is backed up by Redis: copy its append-only files (BGREWRITEAOF first) " +
	"or its snapshot (BGSAVE), as its documentation describes, or keep a replica")

// Backup copies an embedded store to a new directory, which is then a store of its own. If
// a server has the store open, the server is asked for the copy, which takes a user who
// can read the store. For a store in Redis the error is [ErrRedis]; if the directory
// exists, the error wraps [io/fs.ErrExist].
func Backup(ctx context.Context, at Location, dir string) error {
	if strings.Contains(at.URL, "://") {
		return ErrRedis
	}
	path, err := folder(at)
	if err != nil {
		return err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	err = filestore.Copy(ctx, path, dir)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("a backup is a new directory: %w", err)
	case !errors.Is(err, store.ErrStoreLocked):
		return err
	}
	server, contactErr := operator.Read(path)
	if contactErr != nil {
		return errors.Join(err, contactErr)
	}
	return server.Backup(ctx, dir)
}

// Loss is something that [Salvage] could not save.
type Loss struct {
	// Its kind: "thread", "table", "log", "list" or "file".
	What string
	// Name is the thread, as TENANT/THREAD, or the file.
	Name string
	// Reason says for a person why it is lost.
	Reason string
}

// Salvage copies the threads that are whole from a damaged embedded store, in which nothing
// is changed, to a new directory, which is then a store. It returns how many there are, and
// calls lost for everything that could not be saved. A store that a server has open is
// refused with [store.ErrStoreLocked]; if the directory exists, the error wraps
// [io/fs.ErrExist].
func Salvage(ctx context.Context, at Location, dir string, lost func(Loss)) (threads int, err error) {
	if strings.Contains(at.URL, "://") {
		return 0, errors.New("only an embedded store can be salvaged: a store in Redis is restored " +
			"from what Redis has saved")
	}
	path, err := folder(at)
	if err != nil {
		return 0, err
	}
	threads, all, err := filestore.Salvage(ctx, path, dir)
	for _, l := range all {
		lost(Loss(l))
	}
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("what is saved goes to a new directory: %w", err)
	}
	return threads, err
}

// Problem is something about a stored thread that must not be.
type Problem struct {
	// Key is the thread that has the problem.
	Key store.ThreadKey
	// The kind of problem, such as "leaf_missing". It does not change between versions.
	What string
	// Detail describes the problem for a person.
	Detail string
}

// Checked says what a check covered.
type Checked struct {
	// Threads is how many threads were checked.
	Threads int
	// Problems is how many problems were found.
	Problems int
	// Busy is how many threads kept changing and were left out.
	Busy int
}

// Check checks the invariants of all threads of a store, or of a single one named by only,
// and calls found for each problem. It writes nothing. A thread that only names and that
// does not exist is [store.ErrNotFound]; other errors are the store's.
func Check(ctx context.Context, db store.Store, only *store.ThreadKey, found func(Problem)) (Checked, error) {
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
			found(Problem(p))
		}
		return nil
	}
	if only != nil {
		err := check(*only)
		return done, err
	}
	err := eachThread(ctx, db, check)
	return done, err
}

// CheckStates finds the stored middleware states that must be migrated before these
// agents can continue the threads of a store, or a single one named by only: see
// [state.Schema.Migrations]. It calls found for each thread that has any. It writes
// nothing. The agents need no models. Threads that cannot be read are left to [Check].
func CheckStates(
	ctx context.Context, db store.Store, agents []holdfast.Agent, only *store.ThreadKey,
	found func(store.ThreadKey, []state.PendingMigration),
) error {
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
func StoredStates(ctx context.Context, db store.Store, key store.ThreadKey) (*state.States, error) {
	return audit.StoredStates(ctx, db, key)
}

// MendIndex compares the index of a store, by which servers find threads, with the heads of all
// threads, or of a single one named by only. It puts right what is wrong, also while servers have
// the store open, and calls found for it. It returns how many threads it has compared.
func MendIndex(ctx context.Context, db store.Store, only *store.ThreadKey, found func(Problem)) (int, error) {
	m, compared := audit.NewMender(db, clock.NewIDs(clock.Wall)), 0
	mend := func(key store.ThreadKey) error {
		problems, err := m.Mend(ctx, key)
		for _, p := range problems {
			found(Problem(p))
		}
		if err == nil {
			compared++
		}
		return err
	}
	if only != nil {
		err := mend(*only)
		return compared, err
	}
	err := eachThread(ctx, db, mend)
	return compared, err
}

// eachThread calls f once for each thread. A thread that is deleted in the meantime is
// left out. If the names of some cannot be read, the error says so in the end.
func eachThread(ctx context.Context, db store.Store, f func(store.ThreadKey) error) error {
	var damage error
	seen := map[store.ThreadKey]bool{}
	after := ""
	for {
		heads, next, err := db.Walk(ctx, after, 100)
		switch {
		case errors.Is(err, store.ErrUnreadable):
			damage = fmt.Errorf("list the threads: some are missing: %w", err)
		case err != nil:
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
			return damage
		}
		after = next
	}
}
