package owner

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/activity"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/state"
	"github.com/holdfast-agents/holdfast/store"
)

// Interfaces of tools (MCP Apps), and the calls that they make. These are no calls of a model: nothing of them is
// stored with the thread. But the hooks of the thread's agent decide about them in the same way, with what
// they have stored with the thread, such as what a person has allowed for good.

// Interface is an activity of a thread that shows the interface of a tool.
type Interface struct {
	// Content is the activity's content.
	Content json.RawMessage
	// Tools are those that the thread's agent has now.
	Tools map[string]holdfast.Tool

	e     *Engine
	who   holdfast.Principal
	t     *thread.Thread
	agent *agents.Agent
}

// Interfaces finds the interfaces that threads show.
type Interfaces struct{ Engine *Engine }

// In returns the interface that a message of a thread shows. Release is to be called when it is not needed
// any more.
func (x Interfaces) In(ctx context.Context, who holdfast.Principal, id, message string) (*Interface, error) {
	e := x.Engine
	t, err := e.read.Existing(ctx, who, id)
	if err != nil {
		return nil, err
	}
	set := e.Take()
	agent, err := set.OfThread(t)
	if err != nil {
		set.Drop()
		return nil, err
	}
	i := &Interface{
		e:     e,
		who:   who,
		t:     t,
		agent: agent,
		Tools: agent.Toolboxes.Now().ByName,
	}
	if i.Content, err = i.content(ctx, message); err != nil {
		i.Release()
		return nil, err
	}
	return i, nil
}

// Release lets the agents go that the interface was made with.
func (i *Interface) Release() { i.agent.Of.Drop() }

// Agent returns the name of the thread's agent.
func (i *Interface) Agent() string { return i.agent.Name }

// content reads the content of the activity.
func (i *Interface) content(ctx context.Context, message string) (json.RawMessage, error) {
	stored, err := i.e.read.Store.MessagesOf(ctx, i.t.Key, []string{message})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, thread.ReadError(i.t.Key, err)
	}
	at := slices.IndexFunc(stored, func(m store.Message) bool { return m.ID == message })
	if at >= 0 {
		m, err := agui.DecodeMessage(stored[at].Data)
		if err == nil && m.Role == string(holdfast.RoleActivity) && m.ActivityType == activity.TypeApp {
			return m.Content, nil
		}
	}
	return nil, holdfast.Errorf(codes.NotFound, "The thread has no interface %q.", message).
		WithHint("An interface is an activity of the type %s; its id is that of its message.", activity.TypeApp)
}

// Call calls a tool for the interface, if the hooks of the agent allow it without asking a person. If it was not
// started, the error is a [*holdfast.Error]; otherwise it is the tool's.
func (i *Interface) Call(ctx context.Context, tool holdfast.Tool, call holdfast.ToolCall) (holdfast.ToolResult, error) {
	call.Principal = holdfast.Principal{Tenant: i.who.Tenant, User: i.who.User}
	call.Thread, call.Run, call.Iteration = i.t.Key.Thread, i.t.State.Run(), i.t.State.Iteration
	if err := i.e.checker.startableByHand(ctx, tool.Spec(), &call); err != nil {
		return holdfast.ToolResult{}, err
	}
	restored, err := i.e.schemas.restore(ctx, i.t.Key, i.t.State.Clone(), i.agent)
	if err != nil {
		return holdfast.ToolResult{}, err
	}
	at := holdfast.Iteration{
		Agent:       i.agent.Name,
		Principal:   call.Principal,
		Thread:      call.Thread,
		Incarnation: i.t.State.Incarnation,
		Rewinds:     i.t.State.Rewinds,
		Run:         call.Run,
		Number:      call.Iteration,
	}
	ctx = store.ContextWithLedger(state.ContextWith(ctx, i.agent.Schema.Live(restored.states)), i.e.cfg.Store)
	ctx = holdfast.ContextWithRun(ctx, &holdfast.RunContext{Iteration: func() holdfast.Iteration { return at }})
	b := holdfast.NewBatch(&at, []holdfast.ToolCall{call})
	if err := i.agent.Hooks.Decide(ctx, b); err != nil {
		return holdfast.ToolResult{}, err
	}
	switch result, ask := b.Decided(0); {
	case result != nil:
		return *result, nil
	case ask != nil:
		return holdfast.ToolResult{}, errAsks(call.Name)
	}
	forgotten := func(holdfast.StateUpdate) {}
	result, err := i.agent.Hooks.CallTool(holdfast.ContextWithCall(ctx, call, forgotten), tool, call)
	var ask *holdfast.Interrupt
	if errors.As(err, &ask) {
		err = errAsks(call.Name)
	}
	return result, err
}

// errAsks is the error of a call about which a person would have to be asked.
func errAsks(tool string) error {
	return holdfast.Errorf(codes.InvalidInput,
		"A person would have to be asked about %s, which an interface cannot do.", tool).
		WithHint("Ask the agent to call it.")
}
