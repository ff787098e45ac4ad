// Package connection makes the client of a Redis, waits until Redis answers, and says what its
// errors and its settings mean. It knows nothing of what is stored there.
package connection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Log passes on what go-redis logs.
type Log struct{ Log *slog.Logger }

// Printf implements go-redis's logger.
func (l Log) Printf(_ context.Context, format string, args ...any) {
	l.Log.Debug("redis connection", "message", fmt.Sprintf(format, args...))
}

// schemes are those of the URLs that To accepts, with go-redis's names for them.
var schemes = map[string]string{
	"redis":           "redis",
	"rediss":          "rediss",
	"redis+sentinel":  "redis",
	"rediss+sentinel": "rediss",
	"redis+cluster":   "redis",
	"rediss+cluster":  "rediss",
}

// Handles reports whether the URL is one that To accepts.
func Handles(rawURL string) bool {
	scheme, _, _ := strings.Cut(rawURL, "://")
	_, known := schemes[scheme]
	return known
}

// To makes the client for the URL.
func To(rawURL, passwordFile string) (redis.UniversalClient, error) {
	scheme, rest, _ := strings.Cut(rawURL, "://")
	plain, known := schemes[scheme]
	if !known {
		return nil, errors.New("the store's URL must begin with redis://, rediss://, " +
			"redis+sentinel:// or redis+cluster://")
	}
	switch _, kind, _ := strings.Cut(scheme, "+"); kind {
	case "cluster":
		o, err := redis.ParseClusterURL(plain + "://" + rest)
		if err != nil {
			return nil, badURL(err)
		}
		tune(&o.Protocol, &o.PoolSize, &o.MinIdleConns, &o.PipelinePoolSize, &o.ReadBufferSize, &o.WriteBufferSize)
		o.ContextTimeoutEnabled, o.DisableIdentity = true, true
		o.CredentialsProviderContext = credentials(passwordFile, o.Username)
		return redis.NewClusterClient(o), nil
	case "sentinel":
		o, err := redis.ParseFailoverURL(plain + "://" + rest)
		if err != nil {
			return nil, badURL(err)
		}
		if o.MasterName == "" {
			return nil, errors.New("the store's URL names no master: add ?master_name=…")
		}
		tune(&o.Protocol, &o.PoolSize, &o.MinIdleConns, &o.PipelinePoolSize, &o.ReadBufferSize, &o.WriteBufferSize)
		o.ContextTimeoutEnabled, o.DisableIdentity = true, true
		o.CredentialsProviderContext = credentials(passwordFile, o.Username)
		return redis.NewFailoverClient(o), nil
	default:
		o, err := redis.ParseURL(plain + "://" + rest)
		if err != nil {
			return nil, badURL(err)
		}
		tune(&o.Protocol, &o.PoolSize, &o.MinIdleConns, &o.PipelinePoolSize, &o.ReadBufferSize, &o.WriteBufferSize)
		o.ContextTimeoutEnabled, o.DisableIdentity = true, true
		o.CredentialsProviderContext = credentials(passwordFile, o.Username)
		return redis.NewClient(o), nil
	}
}

// tune sets what the URL does not. RESP2 has no push messages to look for in every
// reply. Commits share a few connections, so the pool is for reads; some connections
// stay idle, because dialing is slow. One pool is enough, because pipelines are short.
func tune(protocol, pool, idle, pipelines, read, write *int) {
	for _, o := range []struct {
		value   *int
		setting int
	}{{protocol, 2}, {pool, 32}, {idle, 4}, {pipelines, -1}, {read, 16 << 10}, {write, 16 << 10}} {
		if *o.value == 0 {
			*o.value = o.setting
		}
	}
}

// badURL keeps the URL, which may contain a password, out of the error.
func badURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("the store's URL cannot be used: %w; write redis://host:6379/0", err)
}
