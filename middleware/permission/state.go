package permission

import "github.com/holdfast-agents/holdfast/state"

// ThreadState is what tool permission remembers in a thread.
type ThreadState struct {
	// Remembered has the newest 256 answers for the thread.
	Remembered []Remembered `json:"remembered,omitempty"`
}

// RunState is what tool permission remembers in a run.
type RunState struct {
	// Remembered has the newest 256 answers for the run.
	Remembered []Remembered `json:"remembered,omitempty"`
	// Approved has the calls of this iteration that may be made, as thread/id. They are
	// not asked about again when their tool asks something itself.
	Approved []string `json:"approved,omitempty"`
}

// Remembered is an answer that also applies to later calls.
type Remembered struct {
	// Agent is the agent that made the call.
	Agent string `json:"agent"`
	// Tool is the tool that was called.
	Tool string `json:"tool"`
	// Rule identifies the rule that asked.
	Rule string `json:"rule"`
	// Args is a hash of the arguments, if they have to be the same.
	Args string `json:"args,omitempty"`
	// Allow is the answer.
	Allow bool `json:"allow"`
}

var threadState = state.Register(state.Spec[ThreadState]{
	Name: "holdfast.tool_permission", Version: 1, Scope: state.ScopeThread,
})

var runState = state.Register(state.Spec[RunState]{
	Name: "holdfast.tool_permission_run", Version: 1, Scope: state.ScopeRun,
})
