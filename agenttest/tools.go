package agenttest

import (
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/threads"
)

// Tools that are not the agent's own: toolsets, calls that are finished from outside, and tools
// of the frontend.

// Toolset is a set of these tools, for a test in place of a server's.
type Toolset []holdfast.Tool

// Tools implements [holdfast.Toolset].
func (t Toolset) Tools() []holdfast.Tool { return t }

// Finish gives a call that waits its result from outside, as a service with the role for it
// would, and returns when the run that goes on has ended, waits or was cut off. result is
// written as JSON; an error is what the model reads of work that failed. If the thread waits
// for more, or the result is not taken, nothing runs.
func (h *Harness) Finish(call string, result any) *Result {
	h.t.Helper()
	who := h.on.who
	who.Rights = &access.Rights{Roles: []access.Role{access.RoleService}}
	var r threads.OutsideResult
	if failed, ok := result.(error); ok {
		r = threads.OutsideResult{Error: failed.Error(), Failed: true}
	} else {
		r.Result = h.json(result)
	}
	done, err := h.server.FinishCall(h.t.Context(), who, h.on.name, call, r)
	var refused *holdfast.Error
	switch {
	case errors.As(err, &refused):
		return &Result{Outcome: Refused, Code: refused.Code, Message: refused.Message, Messages: h.messages()}
	case err != nil:
		h.t.Fatalf("agenttest: the call %s cannot be finished: %v", call, err)
	case done.Run == "":
		return h.Resume()
	}
	return h.follow(&cursor{run: done.Run})
}

// Deliver sends the frontend's result of a call, and returns when the run that goes on has
// ended, waits or was cut off.
func (h *Harness) Deliver(call, content string) *Result {
	h.t.Helper()
	result := holdfast.Message{
		ID:     fmt.Sprintf("result%d", h.posts+1),
		Role:   holdfast.RoleTool,
		CallID: call,
		Text:   content,
	}
	return h.post(&agui.RunAgentInput{Messages: []agui.Message{agui.FromDomain(result)}})
}
