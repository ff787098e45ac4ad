// Package stores opens a store by its URL: the embedded one, one in Redis, or one in memory.
// The server and the offline commands share it, so that a URL means the same to both.
package stores

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast/internal/filestore"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/redisstore"
	"github.com/holdfast-agents/holdfast/store"
)

// Patience is how long opening a store waits for a Redis that does not answer yet, or that
// still loads its data.
const Patience = 10 * time.Second

// Options are what the URL of a store does not say.
type Options struct {
	// ReadOnly opens an embedded store for reading, so that nothing in it changes.
	ReadOnly bool
	// RedisPrefix is the prefix of every key in Redis.
	RedisPrefix string
	// RedisPasswordFile is a file with the password of Redis; it is read for each connection.
	RedisPasswordFile string
	// Durability is which acknowledgment counts: see [ParseDurability].
	Durability string
	// Now is the clock of a store in Redis.
	Now func() time.Time
	// Log gets what the store reports.
	Log *slog.Logger
}

// Open opens a store: "file:FOLDER", "redis://HOST:PORT/DB" (also rediss, redis+sentinel and
// redis+cluster) or "memory:". Its errors do not repeat the URL, which may have a password.
func Open(url string, o Options) (store.Store, error) {
	kind, path, _ := strings.Cut(url, ":")
	replicas, err := ParseDurability(o.Durability)
	if err != nil {
		return nil, err
	}
	if redisstore.Handles(url) {
		return redisstore.Open(context.Background(), url, redisstore.Options{
			Prefix:       o.RedisPrefix,
			PasswordFile: o.RedisPasswordFile,
			Replicas:     replicas,
			Now:          o.Now,
			Patience:     Patience,
			Log:          o.Log,
		})
	}
	if replicas > 0 {
		return nil, fmt.Errorf("the durability %s is only possible with replicas of Redis, and the store is not in "+
			"Redis (it is %s:); use a Redis with replicas, or leave it out", o.Durability, kind)
	}
	switch kind {
	case "memory":
		return memstore.New(), nil
	case "file":
		if path == "" {
			return nil, fmt.Errorf("the store %q has no path: write file:./data", url)
		}
		return filestore.Open(path, filestore.Options{ReadOnly: o.ReadOnly, Log: o.Log})
	}
	return nil, fmt.Errorf("unknown store %q: use file:FOLDER, memory: or redis://HOST:6379/0", kind)
}

// Memory makes an empty store in memory.
func Memory() store.Store { return memstore.New() }

// ParseDurability returns how many replicas of Redis must have a commit before it counts: 1 for
// "failover", N for "failover:N", and none for "store" and "", with which Redis's own answer is
// enough.
func ParseDurability(text string) (replicas int, err error) {
	switch number, numbered := strings.CutPrefix(text, "failover:"); {
	case text == "" || text == "store":
		return 0, nil
	case text == "failover":
		return 1, nil
	case numbered:
		if n, err := strconv.Atoi(number); err == nil && n >= 1 && n <= 100 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("the durability %q is not known: use store, failover, or failover:N "+
		"with the number of replicas", text)
}
