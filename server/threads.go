package server

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/threads"
)

// Threads without HTTP: what the routes below /threads and /maintenance read, take back and
// remove, for a program that has the server. Each method takes the user on whose behalf it
// acts ([LocalPrincipal] for a server without keys) and sees only that user's threads: all
// others are not_found. An action that the user's Rights do not allow is forbidden, as it is
// over HTTP. Each error is a [*holdfast.Error].

// defaultLimit is how many threads or checkpoints a list has if the caller does not say.
const defaultLimit = 50

// may returns why a caller may not do something; nil if they may.
func (s *Server) may(ctx context.Context, who holdfast.Principal, action access.Action) error {
	if err := s.cfg.Authorize(ctx, who, action, ""); err != nil {
		return holdfast.AsError(err)
	}
	return nil
}

// Threads lists threads, the most recently active first: up to limit (0: 50) of those that
// were last active before the given time (zero: any time).
func (s *Server) Threads(
	ctx context.Context, who holdfast.Principal, before time.Time, limit int,
) ([]threads.Info, error) {
	limit, err := limitOf(limit)
	if err != nil {
		return nil, err
	}
	if err := s.may(ctx, who, access.Read); err != nil {
		return nil, err
	}
	return coded(s.keeper.Threads(ctx, who, before, limit))
}

// Thread returns a thread, with its size.
func (s *Server) Thread(ctx context.Context, who holdfast.Principal, thread string) (*threads.Info, error) {
	if err := s.may(ctx, who, access.Read); err != nil {
		return nil, err
	}
	return coded(s.keeper.Thread(ctx, who, thread))
}

// Messages returns a thread's messages, the first one first, as AG-UI 1.0 JSON.
func (s *Server) Messages(ctx context.Context, who holdfast.Principal, thread string) ([]json.RawMessage, error) {
	if err := s.may(ctx, who, access.Read); err != nil {
		return nil, err
	}
	messages, err := s.keeper.Messages(ctx, who, thread)
	if err != nil {
		return nil, holdfast.AsError(err)
	}
	all := []json.RawMessage{}
	for m, err := range messages {
		if err != nil {
			return nil, holdfast.AsError(err)
		}
		all = append(all, m)
	}
	return all, nil
}

// State returns a thread's shared state and the states of its middleware.
func (s *Server) State(ctx context.Context, who holdfast.Principal, thread string) (*threads.State, error) {
	if err := s.may(ctx, who, access.Read); err != nil {
		return nil, err
	}
	return coded(s.keeper.State(ctx, who, thread))
}

// Runs lists a thread's runs, newest first.
func (s *Server) Runs(ctx context.Context, who holdfast.Principal, thread string) ([]threads.Run, error) {
	if err := s.may(ctx, who, access.Read); err != nil {
		return nil, err
	}
	return coded(s.keeper.Runs(ctx, who, thread, "", 0))
}

// Checkpoints lists a thread's checkpoints, newest first: up to limit (0: 50) of those
// before the given one (empty: starting with the newest) that were taken before until
// (zero: any time).
func (s *Server) Checkpoints(
	ctx context.Context, who holdfast.Principal, thread, before string, until time.Time, limit int,
) ([]threads.Checkpoint, error) {
	limit, err := limitOf(limit)
	if err != nil {
		return nil, err
	}
	if err := s.may(ctx, who, access.Read); err != nil {
		return nil, err
	}
	return coded(s.keeper.Checkpoints(ctx, who, thread, before, until, limit))
}

// Checkpoint returns a checkpoint with everything it holds.
func (s *Server) Checkpoint(
	ctx context.Context, who holdfast.Principal, thread, checkpoint string,
) (*threads.Detail, error) {
	if err := s.may(ctx, who, access.Read); err != nil {
		return nil, err
	}
	return coded(s.keeper.Checkpoint(ctx, who, thread, checkpoint))
}

// Mark takes a manual checkpoint of a thread that is not running.
func (s *Server) Mark(
	ctx context.Context, who holdfast.Principal, thread string, m threads.Mark,
) (*threads.Checkpoint, error) {
	if m.Label != "" {
		if err := agui.CheckID("label", m.Label); err != nil {
			return nil, err
		}
	}
	if err := checkJSON("state", m.State); err != nil {
		return nil, err
	}
	if err := s.may(ctx, who, access.Change); err != nil {
		return nil, err
	}
	return coded(s.keeper.Mark(ctx, who, thread, m))
}

// Fork starts a new thread where another stands or stood. The thread itself does not change.
func (s *Server) Fork(
	ctx context.Context, who holdfast.Principal, thread string, to threads.Travel,
) (*threads.Traveled, error) {
	if err := checkTravel(to); err != nil {
		return nil, err
	}
	if err := s.may(ctx, who, toTravel(to)); err != nil {
		return nil, err
	}
	return coded(s.keeper.Fork(ctx, who, thread, to))
}

// Rewind takes a thread that is not running back to where it stood. Later checkpoints
// remain, and calls that have changed something outside are named, not undone.
func (s *Server) Rewind(
	ctx context.Context, who holdfast.Principal, thread string, to threads.Travel,
) (*threads.Traveled, error) {
	if err := checkTravel(to); err != nil {
		return nil, err
	}
	if err := s.may(ctx, who, toTravel(to)); err != nil {
		return nil, err
	}
	return coded(s.audited.Rewind(ctx, who, thread, to))
}

// Prune keeps the newest checkpoints of a thread, at least one, and what they and the
// thread need. A dry run only counts. An etag that is not empty must match the thread's.
func (s *Server) Prune(
	ctx context.Context, who holdfast.Principal, thread, etag string, keep int, dryRun bool,
) (*threads.Cleaned, error) {
	if keep < 1 {
		return nil, invalid("keep", "keep must be at least 1.",
			"The newest checkpoint always stays. To remove all, delete the thread.")
	}
	if err := s.may(ctx, who, access.Delete); err != nil {
		return nil, err
	}
	return coded(s.audited.Prune(ctx, who, thread, etag, keep, dryRun))
}

// Delete removes a thread and, if children is set, those that were forked from it. It
// returns how many it removed. An etag that is not empty must match the thread's.
func (s *Server) Delete(ctx context.Context, who holdfast.Principal, thread, etag string, children bool) (int, error) {
	if err := s.may(ctx, who, access.Delete); err != nil {
		return 0, err
	}
	return coded(s.audited.Delete(ctx, who, thread, etag, children))
}

// Children lists the threads that were forked from this one.
func (s *Server) Children(ctx context.Context, who holdfast.Principal, thread string) ([]threads.Info, error) {
	if err := s.may(ctx, who, access.Read); err != nil {
		return nil, err
	}
	return coded(s.keeper.Children(ctx, who, thread))
}

// DeleteOlderThan removes from the user's threads the checkpoints that were taken before
// the given time, but never a thread's newest. A dry run only counts.
func (s *Server) DeleteOlderThan(
	ctx context.Context, who holdfast.Principal, before time.Time, dryRun bool,
) (*threads.Cleaned, error) {
	if err := s.may(ctx, who, access.Delete); err != nil {
		return nil, err
	}
	return coded(s.audited.DeleteOlderThan(ctx, who, before, dryRun))
}

// DeleteInactive deletes the user's idle threads that were last active before the given
// time. A dry run only counts.
func (s *Server) DeleteInactive(
	ctx context.Context, who holdfast.Principal, before time.Time, dryRun bool,
) (*threads.Cleaned, error) {
	if err := s.may(ctx, who, access.Delete); err != nil {
		return nil, err
	}
	return coded(s.audited.DeleteInactive(ctx, who, before, dryRun))
}

// FinishCall gives a call that waits to be finished from outside its result, and goes on with
// the thread if it waits for nothing else. The same result again gets the same answer. The
// right to do so is as over HTTP: a principal with [access.RoleService], or whom the call's
// contract allows.
func (s *Server) FinishCall(
	ctx context.Context, who holdfast.Principal, thread, call string, r threads.OutsideResult,
) (*threads.FinishedCall, error) {
	return coded(s.audited.Finish(ctx, who, thread, call, r))
}

// toTravel returns what a caller must be allowed to do to go back: a preview only reads.
func toTravel(to threads.Travel) access.Action {
	if to.Preview {
		return access.Read
	}
	return access.Change
}

// checkTravel refuses what the HTTP interface refuses too.
func checkTravel(to threads.Travel) error {
	if to.Checkpoint != "" && to.Message != "" {
		return invalid("messageId", "Checkpoint and Message name two different places.", "Set one of them.")
	}
	if to.Thread == "" {
		return nil
	}
	return agui.CheckID("threadId", to.Thread)
}

func limitOf(limit int) (int, error) {
	if limit < 0 {
		return 0, invalid("limit", "limit must not be negative.", "0 means %d.", defaultLimit)
	}
	if limit == 0 {
		return defaultLimit, nil
	}
	return limit, nil
}

func invalid(field, message, hint string, args ...any) error {
	return holdfast.Errorf(codes.InvalidInput, "%s", message).WithHint(hint, args...).With("field", field)
}
