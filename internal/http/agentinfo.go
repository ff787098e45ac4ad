package http

import (
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
)

// Agents lists the agents that can be run.
type Agents interface {
	// Agents returns every agent as they are now, the default one first.
	Agents() []AgentInfo
}

// AgentInfo is what the server knows about an agent: facts of its configuration. The
// capabilities are computed from them, so that the server claims only what it serves.
type AgentInfo struct {
	Name        string
	Description string
	// Revision is a short hash of what shapes the agent's runs.
	Revision string
	Tools    []holdfast.ToolSpec
	// Models are the names of its models, in the order in which they are asked.
	Models []string
	// Middleware are the names of the agent's middleware, the outermost first.
	Middleware []string
	// ParallelTools is how many calls of one answer may run at the same time.
	ParallelTools int
	// MaxIterations bounds a run between two requests; 0 means no bound.
	MaxIterations int
	// Persistent: threads outlive the process.
	Persistent bool
	// Scripted: its model is the one for trying out.
	Scripted bool
	// Approvals is who answers its questions.
	Approvals access.Role
	// ToolTimeout bounds a call of a tool that has no timeout of its own.
	ToolTimeout time.Duration
	// Formed: answers are JSON that fits a schema.
	Formed bool
	// Takes and Makes are which media the agent's model takes and makes; what is not in them
	// is undeclared.
	Takes, Makes map[holdfast.PartType]bool
}
