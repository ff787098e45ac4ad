package permission

import "github.com/holdfast-agents/holdfast"

// ThreadState is what [New] remembers in a thread.
type ThreadState struct {
	Remembered []Remembered `json:"remembered,omitempty"`
}

// RunState is what [New] remembers in a run.
type RunState struct {
	Remembered []Remembered `json:"remembered,omitempty"`
	// Approved are the calls of this iteration, as thread/id, that may be made: they
	// are not asked about again when their tool asks something itself.
	Approved []string `json:"approved,omitempty"`
}

// Remembered is an answer that holds for later calls, too.
type Remembered struct {
	Agent string `json:"agent"`
	Tool  string `json:"tool"`
	// Rule names the rule that asked.
	Rule string `json:"rule"`
	// Args is a hash of the arguments, where they have to be the same.
	Args  string `json:"args,omitempty"`
	Allow bool   `json:"allow"`
}

var threadState = holdfast.RegisterState(holdfast.StateSpec[ThreadState]{
	Name: "holdfast.tool_permission", Version: 1, Scope: holdfast.ScopeThread,
})

var runState = holdfast.RegisterState(holdfast.StateSpec[RunState]{
	Name: "holdfast.tool_permission_run", Version: 1, Scope: holdfast.ScopeRun,
})
