package command

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/holdfast-agents/holdfast/server"
)

// A SIGHUP makes the program read these again: its API keys, and its agents file, for the runs
// that begin from then on.

// reloader reads again what it can at each SIGHUP.
type reloader struct {
	callers callers
	file    string         // the agents file; empty if there is none
	loaded  *server.Loaded // what the file said last
	log     *slog.Logger
	server  *server.Server

	signals chan os.Signal
	ctx     context.Context // done when the program ends
	cancel  context.CancelFunc
	// reading is the goroutine that reads, and closing are those that close what is not used
	// any more.
	reading, closing sync.WaitGroup
}

// newReloader takes over SIGHUP, if there is something to read again. Callers that have tokens
// alone have nothing, and the log says so. A program without anything of that kind ends, as it
// does by default: it runs in a terminal that was closed.
func newReloader(who callers, file string, loaded *server.Loaded, log *slog.Logger) *reloader {
	r := &reloader{
		callers: who,
		file:    file,
		loaded:  loaded,
		log:     log,
		signals: make(chan os.Signal, 1),
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	if file != "" || who.keys != nil || who.tokens != nil {
		signal.Notify(r.signals, syscall.SIGHUP)
	}
	return r
}

// start begins to read again, for this server, what was signalled and will be. The caller
// calls stop when the server has shut down, or could not start.
func (r *reloader) start(s *server.Server) {
	r.server = s
	r.reading.Go(func() {
		for range r.signals {
			r.reload()
		}
	})
}

// stop ends what newReloader and start began, and closes what the file has made.
func (r *reloader) stop() {
	signal.Stop(r.signals)
	r.cancel()
	close(r.signals)
	r.reading.Wait()
	r.closing.Wait()
	if r.loaded != nil {
		r.loaded.Close()
	}
}

// reload reads everything again.
func (r *reloader) reload() {
	if r.callers.keys != nil {
		r.callers.reload(r.log)
	}
	if r.file != "" {
		r.reloadAgents()
	}
	if r.callers.keys == nil && r.file == "" {
		r.log.Info("SIGHUP: there is no file of API keys or agents to read again; the keys of the JWKS are fetched " +
			"every 10 minutes by themselves")
	}
}

// reloadAgents reads the agents file again. The log says which agents have changed, and never
// what is in the file.
func (r *reloader) reloadAgents() {
	next, err := r.loaded.Again(r.file)
	if err != nil {
		r.server.ReloadFailed()
		r.failed(err)
		return
	}
	waitForServers(r.ctx, next, r.log)
	unused, err := r.server.Reload(next.Agents, next.Limits, next.Quotas)
	if err != nil {
		next.Close()
		r.failed(err)
		return
	}
	r.server.SetPrices(next.Prices)
	before := r.loaded
	r.loaded = next
	r.closing.Go(func() {
		select {
		case <-unused:
		case <-r.ctx.Done():
		}
		before.Close()
	})
	r.changed(next.Changes(before))
}

func (r *reloader) changed(c server.Changes) {
	r.audit("ok", "added", c.Added, "removed", c.Removed, "changed", c.Changed, "others", c.Others)
}

// failed logs each mistake, with its place in the file.
func (r *reloader) failed(err error) {
	for mistake := range strings.SplitSeq(err.Error(), "\n") {
		r.log.Error("the agents file could not be read again; all agents stay as they were", "error", mistake)
	}
	r.audit("failed")
}

func (r *reloader) audit(result string, attrs ...any) {
	r.log.Info("audit", append([]any{"who", "this machine", "action", "reload_agents", "result", result}, attrs...)...)
}
