package agenttest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/store"
)

// stopWait is how long a process may take to end. If it takes longer, something
// ignores its context.
const stopWait = 10 * time.Second

// process is one server, from its start to its death. There is no gentler end, so
// whatever survives it survives a crash.
type process struct {
	server *server.Server
	store  *mortal
	life   life
	once   sync.Once
	gone   chan struct{} // closed when none of it is running any more
	err    error         // what was left behind; read after gone
}

// start starts a process with one agent on the store.
func start(
	ctx context.Context, cfg server.Config, agent holdfast.Agent, db store.Store, log io.Writer,
) (*process, error) {
	p := &process{life: make(life), gone: make(chan struct{})}
	p.store = &mortal{Store: db, life: p.life}
	cfg.Agents = []holdfast.Agent{p.life.agent(agent)}
	cfg.OpenStore = func() (store.Store, error) { return p.store, nil }
	cfg.Log = slog.New(slog.NewTextHandler(&mortalLog{log, p.life}, &slog.HandlerOptions{ReplaceAttr: withoutTimes}))
	var err error
	if p.server, err = server.New(cfg); err != nil {
		return nil, err
	}
	if err := p.server.StartEngine(ctx); err != nil {
		return nil, errors.Join(err, p.server.Shutdown(ctx))
	}
	return p, nil
}

// kill makes the process die now: it no longer stores, logs or calls anything. It
// does not wait, because a hook of this very process may have called it.
func (p *process) kill() {
	p.once.Do(func() {
		close(p.life)
		go func() {
			defer close(p.gone)
			cut, cancel := context.WithCancel(context.Background())
			cancel()
			// An error about the cut is what this is for.
			_ = p.server.Shutdown(cut)
			// Tools are cut off too; this waits for them to notice.
			rest, cancel := context.WithTimeout(context.Background(), stopWait)
			defer cancel()
			p.err = p.server.Shutdown(rest)
		}()
	})
}

// wait returns when nothing of a killed process is running any more.
func (p *process) wait() error {
	late := time.NewTimer(2 * stopWait)
	defer late.Stop()
	select {
	case <-p.gone:
		return p.err
	case <-late.C:
		return errors.New("a hook, a tool or a model is still running: it ignores its context")
	}
}
