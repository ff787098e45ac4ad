package holdfast

import (
	"encoding/json"
	"time"
)

// Checkpoint is a listed head of a thread.
type Checkpoint struct {
	// ID grows with the thread: a later checkpoint has a larger one.
	ID        string    `json:"id"`
	ThreadID  string    `json:"threadId"`
	CreatedAt time.Time `json:"createdAt"`
	// ETag is the id of the commit that took it.
	ETag string `json:"etag,omitempty"`
	// Format is the version of its stored form.
	Format int    `json:"format"`
	Agent  string `json:"agent"`
	Run    string `json:"runId"`
	// Status is what the thread was doing: a thread that goes back to a checkpoint
	// taken while it ran is stopped there.
	Status ThreadStatus `json:"status"`
	// Iteration is the one that runs next, counted from 0.
	Iteration int `json:"iteration"`
	// Message is the last message of the history, and Messages how many there are;
	// 0 if it was taken before they were counted.
	Message  string             `json:"messageId,omitempty"`
	Messages int                `json:"messageCount,omitempty"`
	Metadata CheckpointMetadata `json:"metadata"`
}

// CheckpointMetadata says where a checkpoint comes from.
type CheckpointMetadata struct {
	// Source is "input" (a run was accepted), "loop" (an iteration or a run ended),
	// "update" (made by hand) or "fork" (a thread began at, or went back to, another
	// checkpoint).
	Source string `json:"source"`
	// Step is the iteration that runs next; -1 for input.
	Step int `json:"step"`
	// Parent is the checkpoint before it; of a fork, the one it comes from.
	Parent string `json:"parentCheckpointId,omitempty"`
	// ParentThread is the thread of Parent, if that is another one.
	ParentThread string `json:"parentThreadId,omitempty"`
	// Label is what the maker of a manual checkpoint called it.
	Label string `json:"label,omitempty"`
}

// CheckpointDetail is a checkpoint with all that it holds.
type CheckpointDetail struct {
	Checkpoint
	// History is the messages up to the checkpoint, as AG-UI 1.0 JSON, and State
	// the shared state; null if there was none.
	History []json.RawMessage `json:"messages"`
	State   json.RawMessage   `json:"state"`
	// MiddlewareState is the states of the middleware, as [States.MarshalJSON] writes
	// them, redacted where a state asks for it.
	MiddlewareState json.RawMessage `json:"middlewareState,omitempty"`
	// OpenCalls are the tool calls without a result at that time.
	OpenCalls []OpenCall `json:"openToolCalls,omitempty"`
	// PendingWrites are the finished results that no checkpoint holds yet; only
	// the newest checkpoint has any.
	PendingWrites []PendingWrite `json:"pendingWrites,omitempty"`
	// Outcome and Code say how the run had ended, if it had.
	Outcome Outcome `json:"outcome,omitempty"`
	Code    string  `json:"code,omitempty"`
}

// ThreadState is the states of a thread, as they are now.
type ThreadState struct {
	// State is what the application shares with the agent; null if there is none.
	State json.RawMessage `json:"state"`
	// MiddlewareState is as in [CheckpointDetail].
	MiddlewareState json.RawMessage `json:"middlewareState,omitempty"`
}

// OpenCall is a tool call without a result.
type OpenCall struct {
	ID   string `json:"toolCallId"`
	Tool string `json:"toolName"`
	// Interrupt is the id of the question it waits for.
	Interrupt string `json:"interruptId,omitempty"`
}

// PendingWrite is a finished tool result that is saved and that no checkpoint
// holds yet.
type PendingWrite struct {
	CallID      string          `json:"toolCallId"`
	Tool        string          `json:"toolName"`
	Message     string          `json:"messageId"`
	Result      json.RawMessage `json:"result"`
	Failed      bool            `json:"failed,omitempty"`
	Iteration   int             `json:"iteration"`
	ThreadID    string          `json:"threadId"`
	CompletedAt time.Time       `json:"completedAt"`
}

// Travel asks to go back: in place (rewind) or in a new thread (fork).
type Travel struct {
	// Checkpoint is where to go to; or Message is the last message to keep, with
	// the results that follow it. With neither, a fork begins where the thread
	// stands.
	Checkpoint string `json:"checkpointId,omitempty"`
	Message    string `json:"messageId,omitempty"`
	// Thread is the id of a fork; one is made if it is empty.
	Thread string `json:"threadId,omitempty"`
	// ReuseResults: a later call of the same tool with the same arguments gets the
	// recorded result, once, instead of running.
	ReuseResults bool `json:"reuseResults,omitempty"`
	// ETag, if set, must be the thread's.
	ETag string `json:"-"`
}

// Traveled says where a thread is after [Travel].
type Traveled struct {
	Thread     ThreadInfo `json:"thread"`
	Checkpoint Checkpoint `json:"checkpoint"`
	// Effects are what has already happened outside after that point, and is not
	// undone.
	Effects []PastEffect `json:"effects"`
}

// PastEffect is a call of a tool that is not pure.
type PastEffect struct {
	CallID    string          `json:"toolCallId"`
	Tool      string          `json:"toolName"`
	Arguments json.RawMessage `json:"arguments"`
	// Effect is what the tool declares; "frontend" for a frontend's, "unknown" if it
	// is not there any more.
	Effect string `json:"effect"`
	// Message is the result; empty if the call was started and has none.
	Message string `json:"messageId,omitempty"`
	Failed  bool   `json:"failed,omitempty"`
}

// Mark asks for a manual checkpoint.
type Mark struct {
	Label string `json:"label,omitempty"`
	// State replaces the shared state; null leaves it as it is.
	State json.RawMessage `json:"state,omitempty"`
	// ETag, if set, must be the thread's.
	ETag string `json:"-"`
}

// Cleaned says what a clean-up removed, or would remove.
type Cleaned struct {
	DryRun      bool `json:"dryRun"`
	Threads     int  `json:"threads"`
	Checkpoints int  `json:"checkpoints"`
	Messages    int  `json:"messages"`
	// Kept counts the threads that were left alone because they run, are stopped,
	// wait or have moved meanwhile.
	Kept int `json:"kept"`
}
