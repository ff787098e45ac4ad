package threads

import "encoding/json"

// Travel asks to go back: in place (rewind) or in a new thread (fork).
type Travel struct {
	// Checkpoint is the checkpoint to go back to. If both it and Message are empty, a
	// fork begins where the thread stands.
	Checkpoint string `json:"checkpointId,omitempty"`
	// Message, instead of Checkpoint, is the last message to keep; the results that
	// follow it are kept too.
	Message string `json:"messageId,omitempty"`
	// Thread is the id of a fork; if it is empty, the server makes one.
	Thread string `json:"threadId,omitempty"`
	// ReuseResults: the next call of the same tool with the same arguments gets the
	// recorded result, once, instead of running.
	ReuseResults bool `json:"reuseResults,omitempty"`
	// OnlyRecorded: as ReuseResults, and a call that has no recorded result ends the run
	// ([codes.NotRecorded]) instead of running. The next new message ends that.
	OnlyRecorded bool `json:"onlyRecorded,omitempty"`
	// Reuse, instead of ReuseResults, are the ids of the calls whose recorded results are used
	// again; calls of the same tools with the same arguments get them. All others run again or,
	// with OnlyRecorded, end the run.
	Reuse []string `json:"reuse,omitempty"`
	// Preview: nothing is changed. The answer is what it would be otherwise.
	Preview bool `json:"preview,omitempty"`
	// ETag, if set, must match the thread's; otherwise the request is refused.
	ETag string `json:"-"`
}

// Traveled says where a thread is after [Travel].
type Traveled struct {
	// Thread is the thread as it is now: the same one after a rewind, the new one
	// after a fork.
	Thread Info `json:"thread"`
	// Checkpoint is the one that the journey ended in; its source is "fork".
	Checkpoint Checkpoint `json:"checkpoint"`
	// Effects are the calls after that point that have already changed something
	// outside, which nothing undoes.
	Effects []PastEffect `json:"effects"`
	// EffectsIncomplete: what came after that point cannot be read, so there may have been
	// more such calls. Those that are open there count as made.
	EffectsIncomplete bool `json:"effectsIncomplete,omitempty"`
	// Preview: nothing was changed. Thread and Checkpoint are what they would be, but the ETag of
	// Thread is that of the thread to go back on, as it is now.
	Preview bool `json:"preview,omitempty"`
}

// PastEffect is a call of a tool that is not pure.
type PastEffect struct {
	// CallID is the id of the call.
	CallID string `json:"toolCallId"`
	// Tool is the name of the tool that was called.
	Tool string `json:"toolName"`
	// Arguments is what the tool was called with.
	Arguments json.RawMessage `json:"arguments"`
	// Effect is the [holdfast.Effect] that the tool declares; "frontend" for a frontend's
	// tool, "unknown" for one that no longer exists.
	Effect string `json:"effect"`
	// Message is the id of the result; empty if the call was started but has none.
	Message string `json:"messageId,omitempty"`
	// Failed marks a result that reports an error.
	Failed bool `json:"failed,omitempty"`
	// Reusable: the result can be named in [Travel].Reuse. One that a client brought cannot.
	Reusable bool `json:"reusable,omitempty"`
}

// Cleaned says what a clean-up removed, or what a dry run would remove.
type Cleaned struct {
	// DryRun: nothing was removed.
	DryRun bool `json:"dryRun"`
	// Threads is the number of threads that were deleted or made smaller.
	Threads int `json:"threads"`
	// Checkpoints is the number of checkpoints removed from threads that remain.
	Checkpoints int `json:"checkpoints"`
	// Messages is the number of messages removed from threads that remain, since they
	// could no longer be reached.
	Messages int `json:"messages"`
	// Kept is the number of threads that were left alone because they are running,
	// stopped or waiting, or have moved in the meantime.
	Kept int `json:"kept"`
	// Unreadable is the number of threads that were left alone because they, or a part of
	// them, cannot be read by this version.
	Unreadable int `json:"unreadable"`
}
