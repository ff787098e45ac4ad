package offline

import (
	"context"
	"errors"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Replayed is a thread that [Replay] has made.
type Replayed struct {
	// Store is the copy in memory that has the thread; it needs no closing.
	Store store.Store
	// Key is the new thread in Store.
	Key store.ThreadKey
}

// keepCheckpoints is how many checkpoints a replay keeps at least, so that all of them can
// be shown.
const keepCheckpoints = 1000

// ReplayOptions say what [Replay] runs again, and how.
type ReplayOptions struct {
	// Checkpoint is the id of the checkpoint to begin at.
	Checkpoint string
	// RunTools: a call without a recorded result runs its tool, with all its effects.
	// Otherwise it ends the replay with [codes.NotRecorded].
	RunTools bool
	// Show, if not nil, gets each checkpoint of the new thread as it is taken, the oldest
	// first, as with [server.ReplayOptions].Observe.
	Show func(*Inspection)
}

// Replay copies a thread into memory and runs the copy again from one of its checkpoints,
// as [server.Server.Replay] does: the model is asked again, and calls that it makes exactly
// as before get their recorded results. It does not write to the store, and recovers no
// other thread in it.
//
// Of cfg it uses the agents, their limits and the log; the store, what deletes from it, and
// whatever belongs to a listener are ignored. If there is a new thread, it is returned even
// with an error.
func Replay(
	ctx context.Context, db store.Store, key store.ThreadKey, cfg server.Config, o ReplayOptions,
) (*Replayed, error) {
	in, err := Inspect(ctx, db, key, o.Checkpoint)
	if err != nil {
		return nil, err
	}
	copied, err := Copy(ctx, db, key)
	if err != nil {
		return nil, err
	}
	cfg.OpenStore = func() (store.Store, error) { return copied, nil }
	cfg.KeepCheckpoints = max(cfg.KeepCheckpoints, keepCheckpoints, len(in.Checkpoints)+1)
	cfg.DeleteCheckpointsAfter, cfg.DeleteThreadsAfter, cfg.ThreadPruneBytes = 0, 0, 0
	var unreadable error
	to := server.ReplayOptions{Checkpoint: o.Checkpoint, RunTools: o.RunTools}
	if o.Show != nil {
		to.Observe = func(d threads.Detail) {
			shown, err := Inspect(ctx, copied, store.ThreadKey{Tenant: key.Tenant, Thread: d.ThreadID}, d.ID)
			if err != nil {
				unreadable = errors.Join(unreadable, err)
				return
			}
			o.Show(shown)
		}
	}
	fork, err := replay(ctx, cfg, holdfast.Principal{Tenant: key.Tenant, User: in.User}, key.Thread, to)
	err = errors.Join(err, unreadable)
	if fork == "" {
		return nil, err
	}
	return &Replayed{Store: copied, Key: store.ThreadKey{Tenant: key.Tenant, Thread: fork}}, err
}

// replay runs on a server that does not listen.
func replay(
	ctx context.Context, cfg server.Config, who holdfast.Principal, thread string, o server.ReplayOptions,
) (fork string, err error) {
	s, err := server.New(cfg)
	if err != nil {
		return "", err
	}
	if err := s.StartEngine(ctx); err != nil {
		return "", err
	}
	defer func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), server.GracePeriod)
		defer cancel()
		err = errors.Join(err, s.Shutdown(grace))
	}()
	return s.Replay(ctx, who, thread, o)
}
