package connection

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// The password of Redis may change while the server runs. Connections that are open keep what
// they were let in with, so only new ones need the new password. One that stands in a file is
// read for each of them; one in the URL cannot change. If Redis refuses it, commands fail as if
// Redis were away, and the log says what to do.

// refusalEvery is how often the log says that Redis refuses the password.
const refusalEvery = time.Minute

// credentials returns what go-redis calls for each new connection: the user, and the password
// that is in the file then; nil without a file.
func credentials(file, user string) func(context.Context) (string, string, error) {
	if file == "" {
		return nil
	}
	return func(context.Context) (string, string, error) {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", "", fmt.Errorf("read the password of Redis: %w", err)
		}
		return user, strings.TrimSpace(string(text)), nil
	}
}

// passwordLog says in the log that Redis refuses the password, and that it accepts it again.
type passwordLog struct {
	log  *slog.Logger
	file string

	mu      sync.Mutex
	said    time.Time // when the log last said so
	refused bool
}

var _ redis.Hook = (*passwordLog)(nil)

// DialHook implements [redis.Hook].
func (p *passwordLog) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook implements [redis.Hook].
func (p *passwordLog) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		p.note(err)
		return err
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (p *passwordLog) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		p.note(err)
		return err
	}
}

// note takes in how a command ended.
func (p *passwordLog) note(err error) {
	wrong := WrongPassword(err)
	if err != nil && !wrong {
		return // says nothing about the password
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch {
	case !wrong && p.refused && now.Sub(p.said) < time.Second: // a connection that was open before
	case !wrong && p.refused:
		p.refused = false
		p.log.Info("Redis accepts the password again")
	case wrong && (!p.refused || now.Sub(p.said) >= refusalEvery):
		p.refused, p.said = true, now
		what := "Redis refuses the password of the store's URL; if it was changed, start this server again with the " +
			"new one, or keep it in a file (--redis-password-file), which is read again. Nothing is lost: runs wait, " +
			"and are recovered if they wait too long"
		if p.file != "" {
			what = "Redis refuses the password in the file; write the current one there, and the next connection " +
				"uses it. Nothing is lost: runs wait, and are recovered if they wait too long"
		}
		p.log.Error(what, "file", p.file, "error", err)
	}
}

// WatchPassword has the log say when Redis refuses the password of the client, which stands in
// the file if it has a name.
func WatchPassword(client redis.UniversalClient, file string, log *slog.Logger) {
	(&passwordLog{log: log, file: file}).watch(client)
}

// watch has the client's commands noted.
func (p *passwordLog) watch(client redis.UniversalClient) {
	if cluster, ok := client.(*redis.ClusterClient); ok {
		cluster.OnNewNode(func(node *redis.Client) { node.AddHook(p) })
		return
	}
	client.AddHook(p)
}
