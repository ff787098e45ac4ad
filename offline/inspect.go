package offline

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/audit"
	"github.com/holdfast-agents/holdfast/internal/dataformat"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Stored threads as people read them: one line each ([List]), or one of them with all that
// the store holds of it ([Inspect]).

// Summary is a thread in one line.
type Summary struct {
	// Key is the thread's tenant and id.
	Key store.ThreadKey
	// User is the user that the thread belongs to.
	User string
	// Status is a [threads.Status], or "unreadable" if the head cannot be read.
	Status string
	// Iteration is the iteration that runs, or runs next; counted from 0.
	Iteration int
	// Messages is how many messages the history has.
	Messages int
	// Bytes is how much the thread takes in the store.
	Bytes int64
	// UpdatedAt is the time of the thread's last commit.
	UpdatedAt time.Time
}

// DataFormats says which data format the servers of a shared store write, and what each one
// that lives reads. An embedded store, which one server at a time has open, has the format of
// this version and no readers.
func DataFormats(ctx context.Context, db store.Store) (store.Formats, error) {
	return dataformat.Of(ctx, db)
}

// Inspection is a thread in a form that people can read. Of a damaged thread it has what
// can be read.
type Inspection struct {
	Summary
	// Owner is the process that runs the thread; empty if none does.
	Owner string
	// ETag is the id of the last commit that changed what clients see of the thread.
	ETag string
	// Agent is the agent of the current run, or else of the last one.
	Agent string
	// Run is the current run, or else the last one.
	Run string
	// Outcome is how the last run ended; empty while it runs.
	Outcome holdfast.Outcome
	// Code is the error code of a run that ended in error.
	Code string
	// Text is the message of that error.
	Text string
	// Parent is the thread that this one was forked from; empty if it is not a fork.
	Parent string
	// ParentCheckpoint is the checkpoint of Parent at which the fork began.
	ParentCheckpoint string
	// Shown is the checkpoint that History, State, Middleware and Open belong to; nil if
	// they are those of the thread as it is now.
	Shown *threads.Checkpoint
	// History is the messages, the first one first.
	History []Message
	// State is the shared state; nil if there is none.
	State json.RawMessage
	// Middleware is the states of the middleware, redacted where a state asks for it.
	Middleware json.RawMessage
	// Open are the tool calls without a result.
	Open []threads.OpenCall
	// Checkpoints are the listed checkpoints, the newest last.
	Checkpoints []threads.Checkpoint
	// Intents are the calls that were about to start.
	Intents []Intent
	// Pending are the results that no checkpoint holds yet; their Result is left out.
	Pending []threads.PendingWrite
	// Runs are the runs in the order in which they started.
	Runs []Run
	// Size is how many bytes the thread takes, by kind of data as the store counts them.
	Size map[string]int64
	// Problems is what [Check] finds.
	Problems []Problem
}

// Message is a message of a history.
type Message struct {
	// ID is unique in the thread.
	ID string
	// Role says who speaks; "unreadable" if the message cannot be decoded.
	Role string
	// Text is the plain text, or a remark about content that is not text.
	Text string
	// CallID is the call that a tool message is the result of.
	CallID string
	// Calls are the calls that an assistant message makes.
	Calls []Call
}

// Call is a tool call that a message makes.
type Call struct {
	// ID is the id of the call.
	ID string
	// Tool is the name of the tool.
	Tool string
	// Arguments are as the model wrote them.
	Arguments string
}

// Intent is a call that was about to start and has no result in a checkpoint.
type Intent struct {
	// CallID is the id of the call.
	CallID string
	// Tool is the name of the tool.
	Tool string
	// Key is the call's idempotency key.
	Key string
	// At is when the call was about to start.
	At time.Time
}

// Run is one run of a thread.
type Run struct {
	// ID is the run's id.
	ID string
	// Agent is the agent that ran it.
	Agent string
	// Revision is the revision of the agent that the run is, or was last, with; empty if the
	// agent has none.
	Revision string
	// Code is the error code of a run that ended in error.
	Code string
	// Continues is the run that this one continued; empty for a fresh run.
	Continues string
	// Outcome is how the run ended; empty if it has not.
	Outcome holdfast.Outcome
	// StartedAt is when the run was accepted.
	StartedAt time.Time
	// EndedAt is when the run ended; zero if it has not.
	EndedAt time.Time
}

// List describes every thread of a store. It writes nothing.
func List(ctx context.Context, db store.Store, each func(*Summary)) error {
	return eachThread(ctx, db, func(key store.ThreadKey) error {
		s, err := audit.Summarize(ctx, db, key)
		if err == nil {
			summary := Summary(*s)
			each(&summary)
		}
		return err
	})
}

// Inspect describes one thread as it is now or, if checkpoint is not empty, as it was at that
// checkpoint. It writes nothing. Unreadable parts of a damaged thread are left out and are
// among its problems. A thread that does not exist is [store.ErrNotFound]; a checkpoint that
// does not is an error with the code not_found.
func Inspect(ctx context.Context, db store.Store, key store.ThreadKey, checkpoint string) (*Inspection, error) {
	in, err := audit.Inspect(ctx, db, key, checkpoint)
	if err != nil {
		return nil, err
	}
	return &Inspection{
		Summary:          Summary(in.Summary),
		Owner:            in.Owner,
		ETag:             in.ETag,
		Agent:            in.Agent,
		Run:              in.Run,
		Outcome:          in.Outcome,
		Code:             in.Code,
		Text:             in.Text,
		Parent:           in.Parent,
		ParentCheckpoint: in.ParentCheckpoint,
		Shown:            in.Shown,
		History:          each(in.History, message),
		State:            in.State,
		Middleware:       in.Middleware,
		Open:             in.Open,
		Checkpoints:      in.Checkpoints,
		Intents:          each(in.Intents, func(i audit.InspectedIntent) Intent { return Intent(i) }),
		Pending:          in.Pending,
		Runs:             each(in.Runs, func(r audit.InspectedRun) Run { return Run(r) }),
		Size:             in.Size,
		Problems:         each(in.Problems, func(p audit.Problem) Problem { return Problem(p) }),
	}, nil
}

func message(m audit.InspectedMessage) Message {
	return Message{
		ID:     m.ID,
		Role:   m.Role,
		Text:   m.Text,
		CallID: m.CallID,
		Calls:  each(m.Calls, func(c audit.InspectedCall) Call { return Call(c) }),
	}
}

// each converts a list; nil stays nil.
func each[From, To any](list []From, convert func(From) To) []To {
	var out []To
	for _, v := range list {
		out = append(out, convert(v))
	}
	return out
}
