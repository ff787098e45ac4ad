package server

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/ids"
	"github.com/holdfast-agents/holdfast/threads"
)

// Replay runs a thread again from one of its checkpoints, in a fork. When the run has
// ended, it passes each checkpoint of the fork to observe, the oldest first. The model
// is asked again. Calls that it makes exactly as before get their recorded results,
// each once, without running their tools; other calls do run. The thread itself does
// not change. A run that ends in an error makes Replay return an error; one that waits
// for a person does not. Once there is a fork, its id is returned, even with an error.
// The server must have been started.
func (s *Server) Replay(ctx context.Context, who holdfast.Principal, thread, checkpoint string, observe func(threads.Detail)) (fork string, err error) {
	if checkpoint == "" {
		return "", holdfast.Errorf(codes.InvalidInput, "A replay begins at a checkpoint, and none is named.")
	}
	forked, err := s.keeper.Fork(ctx, who, thread, threads.Travel{Checkpoint: checkpoint, ReuseResults: true})
	if err != nil {
		return "", fmt.Errorf("fork thread %s: %w", thread, err)
	}
	fork = forked.Thread.ID
	in := &agui.RunAgentInput{ThreadID: fork, RunID: ids.New(s.cfg.Now)("run"), ProtocolVersion: agui.ProtocolVersion}
	reply, err := s.engine.Post(ctx, who, "", in)
	if err != nil {
		return fork, fmt.Errorf("run fork %s: %w", fork, err)
	}
	for _, err := range reply.Frames {
		if err != nil {
			return fork, fmt.Errorf("run fork %s: %w", fork, err)
		}
	}
	if err := ctx.Err(); err != nil {
		return fork, fmt.Errorf("run fork %s: %w", fork, err)
	}
	if err := s.observe(ctx, who, fork, observe); err != nil {
		return fork, fmt.Errorf("read the checkpoints of fork %s: %w", fork, err)
	}
	info, err := s.keeper.Thread(ctx, who, fork)
	if err == nil && info.Status == threads.StatusStopped {
		err = holdfast.Errorf(info.Code, "The replay ended in an error at iteration %d.", info.Iteration)
	}
	return fork, err
}

// observe passes the checkpoints of a thread to the function, the oldest first.
func (s *Server) observe(ctx context.Context, who holdfast.Principal, thread string, observe func(threads.Detail)) error {
	const page = 100
	var all []threads.Checkpoint
	for before := ""; ; before = all[len(all)-1].ID {
		list, err := s.keeper.Checkpoints(ctx, who, thread, before, time.Time{}, page)
		if err != nil {
			return err
		}
		all = append(all, list...)
		if len(list) < page {
			break
		}
	}
	for _, cp := range slices.Backward(all) {
		detail, err := s.keeper.Checkpoint(ctx, who, thread, cp.ID)
		if err != nil {
			return err
		}
		observe(*detail)
	}
	return nil
}
