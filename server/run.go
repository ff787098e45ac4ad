package server

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/clock"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// Runs without HTTP: a program starts, watches and cancels runs with the same rules, limits
// and events as a client of POST /runs and of the routes that stream. All of it needs a
// server that was started, with Start or StartEngine.

// Event is one event of a stream, as a client of the HTTP interface gets it.
type Event struct {
	// Cursor is the event's place in the thread's log, the same as the id of a Server-Sent
	// Event: [Server.Events] continues after it. It is empty for events that are not
	// stored: those that describe what came before, and notices.
	Cursor string
	// Type is the event's AG-UI type, such as "TEXT_MESSAGE_CONTENT".
	Type string
	// JSON is the whole event, as AG-UI 1.0 JSON. It must not be changed.
	JSON json.RawMessage
}

// Input says what to run.
type Input struct {
	// Thread is the thread to run on; it is created if it does not exist. If empty, the
	// server chooses an id, which RUN_STARTED has.
	Thread string
	// Run is the id of the run. A second Run with the same id and the same input starts
	// nothing, but watches the first. If empty, the server chooses an id.
	Run string
	// Agent is the name of the agent. If empty, it is the agent that has unfinished work on
	// the thread, or else the first of Config.Agents.
	Agent string
	// Text, if set, is a message of the user after Messages.
	Text string
	// Messages are new messages; those that the thread already has may be repeated. Each
	// needs an id of its own. Without messages and answers a run that was stopped is
	// continued, and one that is running is watched.
	Messages []holdfast.Message
	// Answers answer the thread's open questions.
	Answers []Answer
	// State, if set, replaces the shared state before the run; any JSON.
	State json.RawMessage
	// Tools are tools that the caller runs itself. The run ends at a call of one; its result
	// is a tool message in the next input. Name, Description, Parameters and Metadata are
	// used.
	Tools []holdfast.ToolSpec
	// Context are facts for the model, for this run.
	Context []holdfast.ContextItem
	// ParentRun is stored with the run and otherwise ignored.
	ParentRun string
	// ForwardedProps are passed to the agent's middleware; any JSON. If Policy, Branch or
	// AllowStale are set, it must be an object or empty. Its member toolChoice says which tools
	// the model may call; one that must call one of Tools on a new thread is a side run, which
	// is not stored and ends when its events are not read any more.
	ForwardedProps json.RawMessage
	// Policy overrides the agent's policy for this input; empty members do not.
	Policy holdfast.Policy
	// Branch lets Messages begin a new branch of the history at the last message that they
	// have in common with it.
	Branch bool
	// AllowStale continues a run although the history has changed since it stopped.
	AllowStale bool
}

// Answer answers an open question: see [threads.Info].Interrupts.
type Answer struct {
	// Interrupt is the id of the question.
	Interrupt string
	// Payload is the answer; any JSON.
	Payload json.RawMessage
	// Cancelled abandons the question without an answer.
	Cancelled bool
}

// Run starts a run, or continues or watches one, and returns its events until it ends. The
// input's effect depends on the thread, exactly as for POST /runs. Nothing happens before the
// iterator is used; using it again watches the same run.
//
// Leaving the loop, or cancelling ctx, only stops watching: the run continues, [Server.Cancel]
// ends it and [Server.Events] goes on watching. An error comes with an empty Event and is
// the last that the iterator yields. Each is a [*holdfast.Error]: before the first event it
// says why nothing was started, and later, with the code stream_cut or store_unavailable,
// that watching ended before the run did. A run that fails is no error but ends with the
// event RUN_ERROR.
func (s *Server) Run(ctx context.Context, who holdfast.Principal, input Input) iter.Seq2[Event, error] {
	newID := clock.NewIDs(s.now)
	if input.Thread == "" {
		input.Thread = newID("thread")
	}
	if input.Run == "" {
		input.Run = newID("run")
	}
	return s.events(ctx, func() (*agui.Reply, error) {
		in, err := input.decoded()
		if err != nil {
			return nil, err
		}
		return s.streams.Post(ctx, who, input.Agent, in)
	})
}

// Watch shows a thread to a caller who knows nothing of it: its messages and state as
// events without a cursor, and then the current run, if there is one, until it ends. It is
// GET /threads/{thread}/stream. Leaving the loop and errors are as with [Server.Run].
func (s *Server) Watch(ctx context.Context, who holdfast.Principal, thread string) iter.Seq2[Event, error] {
	return s.events(ctx, func() (*agui.Reply, error) {
		if err := s.may(ctx, who, access.Read); err != nil {
			return nil, err
		}
		return s.streams.Attach(ctx, who, thread, agui.DialectV1)
	})
}

// Events returns a run's events after a cursor until the run ends, and none if it has ended
// and nothing is missing. An empty cursor is the beginning of the run. It is GET
// /threads/{thread}/runs/{run}/events and, if run is empty, GET /threads/{thread}/stream: the
// thread's current run. If the thread does not have the cursor's event, the events start over
// with snapshots, and metadata.holdfast.resyncReason of RUN_STARTED says why; a cursor that
// cannot be read is the error invalid_cursor. Leaving the loop and errors are as with
// [Server.Run].
func (s *Server) Events(
	ctx context.Context, who holdfast.Principal, thread, run, after string,
) iter.Seq2[Event, error] {
	return s.events(ctx, func() (*agui.Reply, error) {
		cursor, err := store.ParseCursor(after)
		if err != nil {
			return nil, holdfast.Errorf(codes.InvalidCursor, "The cursor cannot be read.").
				WithHint("It is the Cursor of the last event received; empty to start at the beginning of the run.").
				Wrap(err)
		}
		if err := s.may(ctx, who, access.Read); err != nil {
			return nil, err
		}
		return s.streams.Events(ctx, who, thread, run, cursor, agui.DialectV1)
	})
}

// Cancel asks a run to end, and returns the thread as it is now. The run may still be
// running; its last event says how it ended. If the run has ended, nothing changes.
func (s *Server) Cancel(ctx context.Context, who holdfast.Principal, thread, run string) (*threads.Info, error) {
	if err := s.may(ctx, who, access.Cancel); err != nil {
		return nil, err
	}
	return coded(s.engine.Cancel(ctx, who, thread, run))
}

// events opens a stream when the iterator is used, and yields its frames one by one.
func (s *Server) events(ctx context.Context, open func() (*agui.Reply, error)) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		reply, err := open()
		if err != nil {
			yield(Event{}, watchError(ctx, err))
			return
		}
		if reply == nil {
			return
		}
		for frames, err := range reply.Whole() {
			if err != nil {
				yield(Event{}, watchError(ctx, err))
				return
			}
			for _, f := range frames {
				if !yield(Event{Cursor: f.ID, Type: string(agui.TypeOf(f.Data)), JSON: f.Data}, nil) {
					return
				}
			}
		}
		// A stream that ends because nobody waits for it any more ends without an error.
		if ctx.Err() != nil {
			yield(Event{}, watchError(ctx, ctx.Err()))
		}
	}
}

// watchError returns err as a [*holdfast.Error]. If the caller has gone, that is the reason,
// whatever it was that failed because of it.
func watchError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return holdfast.Errorf(codes.StreamCut, "Watching ended because its context did; the run continues.").
			WithHint("Events continues after the cursor of the last event; Cancel ends the run.").
			Wrap(context.Cause(ctx))
	}
	return holdfast.AsError(err)
}

// decoded returns the input as a client would have posted it, checked by the same code.
func (in *Input) decoded() (*agui.RunAgentInput, error) {
	for _, part := range []struct {
		name string
		json json.RawMessage
	}{{"State", in.State}, {"ForwardedProps", in.ForwardedProps}} {
		if err := checkJSON(part.name, part.json); err != nil {
			return nil, err
		}
	}
	props, err := in.props()
	if err != nil {
		return nil, err
	}
	out := agui.RunAgentInput{
		ThreadID:        in.Thread,
		RunID:           in.Run,
		ProtocolVersion: agui.ProtocolVersion,
		ParentRunID:     in.ParentRun,
		State:           in.State,
		Context:         in.Context,
		ForwardedProps:  props,
	}
	for _, m := range in.Messages {
		out.Messages = append(out.Messages, agui.FromDomain(m))
	}
	if in.Text != "" {
		// The id is made from the run's, so that a second Run with the same input is
		// recognized.
		m := holdfast.Message{ID: in.Run + "-input", Role: holdfast.RoleUser, Text: in.Text}
		out.Messages = append(out.Messages, agui.FromDomain(m))
	}
	for _, t := range in.Tools {
		out.Tools = append(out.Tools, agui.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters,
			Metadata: t.Metadata})
	}
	for _, a := range in.Answers {
		if err := checkJSON("Answer.Payload", a.Payload); err != nil {
			return nil, err
		}
		entry := agui.ResumeEntry{InterruptID: a.Interrupt, Status: agui.ResumeResolved, Payload: a.Payload}
		if a.Cancelled {
			entry.Status = agui.ResumeCancelled
		}
		out.Resume = append(out.Resume, entry)
	}
	return agui.DecodeInput(out.AppendJSON(nil))
}

// props returns ForwardedProps with what the input chooses itself.
func (in *Input) props() (json.RawMessage, error) {
	if in.Policy == (holdfast.Policy{}) && !in.Branch && !in.AllowStale {
		return in.ForwardedProps, nil
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(cmp.Or(string(in.ForwardedProps), "{}")), &members); err != nil || members == nil {
		return nil, holdfast.Errorf(codes.InvalidInput, "ForwardedProps is not an object.").
			WithHint("Policy, Branch and AllowStale are members of it.").With("field", "ForwardedProps").Wrap(err)
	}
	chosen, err := json.Marshal(struct {
		holdfast.Policy
		Branch     bool `json:"branch,omitempty"`
		AllowStale bool `json:"allowStale,omitempty"`
	}{in.Policy, in.Branch, in.AllowStale})
	if err != nil {
		return nil, err
	}
	members["holdfast"] = chosen
	return json.Marshal(members)
}

// checkJSON refuses a text that is not JSON; an empty one counts as absent.
func checkJSON(field string, text json.RawMessage) error {
	if len(text) == 0 || json.Valid(text) {
		return nil
	}
	return holdfast.Errorf(codes.InvalidInput, "%s is not valid JSON.", field).
		WithHint("Use json.Marshal; leave it empty if there is none.").With("field", field)
}

// coded makes sure that an error is a [*holdfast.Error].
func coded[T any](v T, err error) (T, error) {
	if err != nil {
		return v, holdfast.AsError(err)
	}
	return v, nil
}
