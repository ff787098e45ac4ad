package http

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"net/http"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// POST with Accept: application/json: waits for the end of a run and answers with one
// object instead of a stream.

// outcomeError is the outcome of a run that ended in RUN_ERROR; the other outcomes are
// AG-UI's.
const outcomeError = "error"

// runResult is a run that has ended, as one object.
type runResult struct {
	resultHead
	// messages are the thread's messages after the run, as GET
	// /threads/{thread}/messages returns them.
	messages iter.Seq2[json.RawMessage, error]
	resultRest
}

// resultHead and resultRest are what a result has before and after its messages.
type resultHead struct {
	// Outcome is success, interrupt, cancelled or error.
	Outcome string `json:"outcome"`
	// RunID is the run that ended; if the request attached to an existing run, that one.
	RunID    string `json:"runId"`
	ThreadID string `json:"threadId"`
}

type resultRest struct {
	// Result is the answer of an agent whose answers have a form.
	Result json.RawMessage `json:"result,omitempty"`
	// State is the thread's shared state after the run; {} if it has none.
	State json.RawMessage `json:"state"`
	// Usage has one entry for each model, summed over the run's calls.
	Usage              []holdfast.Usage `json:"usage"`
	Interrupts         []agui.Interrupt `json:"interrupts,omitempty"`
	PendingToolCallIDs []string         `json:"pendingToolCallIds,omitempty"`
	OutsideCalls       json.RawMessage  `json:"outsideCalls,omitempty"`
	Error              *runError        `json:"error,omitempty"`
}

// runError says why a run failed.
type runError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// results answers with the results of runs.
type results struct {
	threads   Threads
	authorize authorizer
	log       *slog.Logger
}

// answer waits for the end of a run and answers with one object. A run that was
// accepted but failed is a 200 with the outcome error: the request did what it asked
// for, the failure is part of the thread, and asking again gives the same answer. A 5xx
// would make clients and proxies repeat what has already been done.
func (a *results) answer(w http.ResponseWriter, r *http.Request, who holdfast.Principal, reply *agui.Reply) error {
	nameRun(w.Header(), reply)
	result, err := a.result(r.Context(), who, reply)
	if r.Context().Err() != nil {
		return nil // the client went away; the run continues without it
	}
	if err != nil && !reply.Side {
		return goesOn(err, reply)
	}
	if err != nil {
		return err
	}
	return result.write(w, r, a.log)
}

// write writes the result as one object.
func (result *runResult) write(w http.ResponseWriter, r *http.Request, log *slog.Logger) error {
	head, err := encoded(result.resultHead)
	if err != nil {
		return err
	}
	rest, err := encoded(result.resultRest)
	if err != nil {
		return err
	}
	return writeMessages(w, r, log, strings.TrimSuffix(head, "}\n")+",", result.messages,
		","+strings.TrimPrefix(rest, "{"))
}

// encoded returns a value as exchange.WriteJSON writes it.
func encoded(v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.String(), err
}

// result drains the reply, and then reads the thread as the run left it.
func (a *results) result(ctx context.Context, who holdfast.Principal, reply *agui.Reply) (*runResult, error) {
	var said agui.Assembler
	last, err := drain(reply, &said)
	if err != nil {
		return nil, err
	}
	result, err := outcome(last)
	if err != nil {
		return nil, err
	}
	result.RunID, result.ThreadID = reply.RunID, reply.ThreadID
	if reply.Side { // there is no thread to read
		result.State = json.RawMessage("{}")
		result.messages = func(yield func(json.RawMessage, error) bool) {
			for _, m := range said.Messages() {
				if !yield(m.AppendJSON(nil), nil) {
					return
				}
			}
		}
		return result, nil
	}
	if err := a.authorize(ctx, who, access.Read, ""); err != nil {
		return nil, err
	}
	if result.messages, err = a.threads.Messages(ctx, who, reply.ThreadID); err != nil {
		return nil, err
	}
	if result.State, err = a.state(ctx, who, reply.ThreadID); err != nil {
		return nil, err
	}
	return result, nil
}

// drain reads a stream to its end and keeps only RUN_FINISHED or RUN_ERROR, and what a side run
// says.
func drain(reply *agui.Reply, said *agui.Assembler) (last []byte, err error) {
	for frames, err := range reply.Frames {
		if err != nil {
			return nil, err
		}
		for i := range frames {
			if reply.Side && frames[i].Pieces == nil {
				ev, err := agui.DecodeEvent(frames[i].Data)
				if err != nil {
					return nil, err
				}
				said.Apply(ev)
			}
			switch agui.TypeOf(frames[i].Data) {
			case agui.TypeRunFinished, agui.TypeRunError:
				last = frames[i].Data
			}
		}
	}
	if last == nil {
		return nil, holdfast.Errorf(codes.StreamCut, "The connection to the run was lost before its end.")
	}
	return last, nil
}

// state returns the thread's shared state. It is read from the thread like the
// messages, so that both are from the same time, and because a stream shows only
// changes.
func (a *results) state(ctx context.Context, who holdfast.Principal, thread string) (json.RawMessage, error) {
	state, err := a.threads.State(ctx, who, thread)
	switch {
	case err != nil:
		return nil, err
	case state.State == nil:
		return json.RawMessage("{}"), nil
	}
	return state.State, nil
}

// outcome returns what the last event says.
func outcome(last []byte) (*runResult, error) {
	ev, err := agui.DecodeEvent(last)
	if err != nil {
		return nil, err
	}
	result := &runResult{}
	result.Outcome, result.Usage = string(agui.OutcomeSuccess), []holdfast.Usage{}
	switch ev := ev.(type) {
	case agui.RunError:
		result.Outcome = outcomeError
		result.Error = &runError{Code: ev.Code, Message: ev.FullText()}
		result.Usage = append(result.Usage, ev.Usage...)
	case agui.RunFinished:
		if ev.Outcome != nil {
			result.Outcome = string(ev.Outcome.Type)
			result.Interrupts, result.PendingToolCallIDs = ev.Outcome.Interrupts, ev.Outcome.PendingToolCallIDs
		}
		result.Result, result.Usage = ev.Result, append(result.Usage, ev.Usage...)
		result.OutsideCalls = outsideCalls(ev.Metadata)
	}
	return result, nil
}

// outsideCalls returns the calls that RUN_FINISHED says are finished from outside; nil if
// there are none.
func outsideCalls(metadata json.RawMessage) json.RawMessage {
	var m struct {
		Holdfast struct {
			OutsideCalls json.RawMessage `json:"outsideCalls"`
		} `json:"holdfast"`
	}
	if len(metadata) == 0 || json.Unmarshal(metadata, &m) != nil {
		return nil
	}
	return m.Holdfast.OutsideCalls
}

// goesOn returns the error of a request that could not wait for the end of its run. In every
// case the run was accepted, so the advice is always the same.
func goesOn(err error, reply *agui.Reply) error {
	e := holdfast.AsError(err)
	message := e.Message
	if e.Code == codes.StreamCut {
		message = "This connection ends before its run does; the run continues."
	}
	return holdfast.Errorf(e.Code, "%s", message).
		WithHint("POST the same body with the same runId again: nothing is started twice, and the answer comes when "+
			"the run has ended. To watch it, GET /threads/{thread}/stream.").
		With("threadId", reply.ThreadID).With("runId", reply.RunID).Wrap(err)
}
