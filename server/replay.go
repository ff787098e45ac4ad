package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Running a thread again from a checkpoint. The fork runs like any other thread, and while
// it does, one goroutine shows its checkpoints: it is woken by commits of the fork, so a
// run that hangs has shown all that it has done.

// ReplayOptions say what [Server.Replay] runs again, and how.
type ReplayOptions struct {
	// Checkpoint is the id of the checkpoint to begin at.
	Checkpoint string
	// RunTools: a call without a recorded result runs its tool, with all its effects.
	// Otherwise it ends the replay with [codes.NotRecorded].
	RunTools bool
	// Observe, if not nil, gets each checkpoint of the fork as it is taken, the oldest
	// first. It is called by one goroutine at a time, the last time before Replay returns;
	// the run does not wait for it.
	Observe func(threads.Detail)
}

// Replay runs a thread again from one of its checkpoints, in a fork. The model is asked
// again. Calls that it makes exactly as before get their recorded results, each once,
// without running their tools. The thread itself does not change. A run that ends in an
// error makes Replay return an error; one that waits for a person does not. Once there is
// a fork, its id is returned, even with an error. The server must have been started.
func (s *Server) Replay(
	ctx context.Context, who holdfast.Principal, thread string, o ReplayOptions,
) (fork string, err error) {
	if o.Checkpoint == "" {
		return "", holdfast.Errorf(codes.InvalidInput, "A replay begins at a checkpoint, and none is named.")
	}
	fork = clock.NewIDs(s.now)("thread")
	committed := make(chan struct{}, 1)
	key := store.ThreadKey{Tenant: who.Tenant, Thread: fork}
	s.replays.Store(key, committed)
	defer s.replays.Delete(key)
	to := threads.Travel{Checkpoint: o.Checkpoint, ReuseResults: true, OnlyRecorded: !o.RunTools, Thread: fork}
	err = s.cfg.Authorize(ctx, who, access.Change, "")
	if err == nil {
		_, err = s.keeper.Fork(ctx, who, thread, to)
	}
	if err != nil {
		return "", fmt.Errorf("fork thread %s: %w", thread, err)
	}
	p := &replaying{s: s, who: who, fork: fork, observe: o.Observe}
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx) }()
	err = p.show(ctx, committed, ended)
	if err != nil {
		err = fmt.Errorf("run fork %s: %w", fork, err)
	}
	return fork, err
}

// replayed wakes the replay of the thread that a commit was made to, if there is one.
func (s *Server) replayed(at holdfast.Iteration, c *store.Commit, _ time.Duration, err error) {
	if err != nil {
		return
	}
	found, ok := s.replays.Load(store.ThreadKey{Tenant: at.Principal.Tenant, Thread: at.Thread})
	if committed, is := found.(chan struct{}); ok && is && slices.ContainsFunc(c.Put, isCheckpoint) {
		select {
		case committed <- struct{}{}:
		default: // it is awake already
		}
	}
}

func isCheckpoint(v store.Value) bool { return v.Kind == store.KindCheckpoint }

// replaying is a replay whose fork exists.
type replaying struct {
	s       *Server
	who     holdfast.Principal
	fork    string
	observe func(threads.Detail)
	last    string // the id of the last checkpoint that was shown
}

// run continues the fork until its run ends, and returns the error that it ends in.
func (p *replaying) run(ctx context.Context) error {
	run := clock.NewIDs(p.s.now)("run")
	in := &agui.RunAgentInput{ThreadID: p.fork, RunID: run, ProtocolVersion: agui.ProtocolVersion}
	reply, err := p.s.engine.Post(ctx, p.who, "", in)
	if err != nil {
		return err
	}
	var last []byte
	for frames, err := range reply.Frames {
		if err != nil {
			return err
		}
		for i := range frames {
			last = frames[i].Data
		}
	}
	if err := ctx.Err(); err != nil || agui.TypeOf(last) != agui.TypeRunError {
		return err
	}
	ev, err := agui.DecodeEvent(last)
	if failed, ok := ev.(agui.RunError); ok {
		return holdfast.Errorf(failed.Code, "The replay ended in an error: %s", failed.FullText())
	}
	return err
}

// show shows checkpoints until the run has ended, and all that are left then. It returns
// the run's error and its own.
func (p *replaying) show(ctx context.Context, committed <-chan struct{}, ended <-chan error) error {
	for {
		select {
		case <-committed:
			if err := p.showNew(ctx); err != nil {
				return errors.Join(<-ended, err)
			}
		case err := <-ended:
			return errors.Join(err, p.showNew(context.WithoutCancel(ctx)))
		}
	}
}

// showNew shows the checkpoints that were not shown yet, the oldest first.
func (p *replaying) showNew(ctx context.Context) error {
	if p.observe == nil {
		return nil
	}
	const page = 100
	var fresh []threads.Checkpoint
	for before, more := "", true; more; {
		list, err := p.s.keeper.Checkpoints(ctx, p.who, p.fork, before, time.Time{}, page)
		if err != nil {
			return fmt.Errorf("list its checkpoints: %w", err)
		}
		more = len(list) == page
		for _, cp := range list {
			if cp.ID == p.last {
				more = false
				break
			}
			fresh, before = append(fresh, cp), cp.ID
		}
	}
	for _, cp := range slices.Backward(fresh) {
		detail, err := p.s.keeper.Checkpoint(ctx, p.who, p.fork, cp.ID)
		if err != nil {
			return fmt.Errorf("read its checkpoint %s: %w", cp.ID, err)
		}
		p.observe(*detail)
		p.last = cp.ID
	}
	return nil
}
