package http

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// outcomeError is the outcome of a run that ended in RUN_ERROR; the others are
// AG-UI's.
const outcomeError = "error"

// runResult is a run that has ended, as one object.
type runResult struct {
	// Outcome is success, interrupt, cancelled or error.
	Outcome string `json:"outcome"`
	// RunID is the run that ended: where a request attached to one that was there
	// already, that one.
	RunID    string `json:"runId"`
	ThreadID string `json:"threadId"`
	// Messages are the thread's after the run, as GET /threads/{thread}/messages
	// answers them.
	Messages []json.RawMessage `json:"messages"`
	// State is the thread's shared state after the run; {} when it has none.
	State json.RawMessage `json:"state"`
	// Usage is one entry for each model, summed over the run's calls.
	Usage              []holdfast.Usage `json:"usage"`
	Interrupts         []agui.Interrupt `json:"interrupts,omitempty"`
	PendingToolCallIDs []string         `json:"pendingToolCallIds,omitempty"`
	Error              *runError        `json:"error,omitempty"`
}

// runError says why a run failed.
type runError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// answer waits for the end of a run and answers with one object. A run that was
// accepted and failed is 200 with the outcome error: the request did what it
// asked for, the failure is part of the thread, and asking again gives the same
// answer; a 5xx would make clients and proxies send again what has been done.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, who holdfast.Principal, reply *agui.Reply) error {
	w.Header().Set("Holdfast-Run", reply.RunID)
	result, err := h.result(r.Context(), who, reply)
	if r.Context().Err() != nil {
		return nil // the client went away; the run does not need it
	}
	if err != nil {
		return goesOn(err, reply)
	}
	writeJSON(w, http.StatusOK, result)
	return nil
}

// result drains the reply, and then reads what the run left behind.
func (h *handler) result(ctx context.Context, who holdfast.Principal, reply *agui.Reply) (*runResult, error) {
	last, err := drain(reply)
	if err != nil {
		return nil, err
	}
	result, err := outcome(last)
	if err != nil {
		return nil, err
	}
	result.RunID, result.ThreadID = reply.RunID, reply.ThreadID
	if result.Messages, err = h.Threads.Messages(ctx, who, reply.ThreadID); err != nil {
		return nil, err
	}
	if result.State, err = h.state(ctx, who, reply.ThreadID); err != nil {
		return nil, err
	}
	return result, nil
}

// drain reads a stream to its end and keeps nothing but RUN_FINISHED or
// RUN_ERROR.
func drain(reply *agui.Reply) (last []byte, err error) {
	for frames, err := range reply.Frames {
		if err != nil {
			return nil, err
		}
		for i := range frames {
			switch agui.TypeOf(frames[i].Data) {
			case agui.TypeRunFinished, agui.TypeRunError:
				last = frames[i].Data
			}
		}
	}
	if last == nil {
		return nil, holdfast.Errorf(holdfast.CodeStreamCut, "The connection to the run was lost before its end.")
	}
	return last, nil
}

// state is the thread's shared state. It is read anew, like the messages, so that
// both are of one time, and because a stream shows only changes of it.
func (h *handler) state(ctx context.Context, who holdfast.Principal, thread string) (json.RawMessage, error) {
	reply, err := h.Runs.Attach(ctx, who, thread, agui.DialectV1)
	if err != nil {
		return nil, err
	}
	for frames, err := range reply.Frames {
		if err != nil {
			return nil, err
		}
		for i := range frames {
			if agui.TypeOf(frames[i].Data) != agui.TypeStateSnapshot {
				continue
			}
			// The first is the committed state; what follows may be a run that is not
			// ours.
			var ev agui.StateSnapshot
			err := json.Unmarshal(frames[i].Data, &ev)
			return ev.Snapshot, err
		}
	}
	return nil, errors.New("the thread was attached to, and showed no state")
}

// outcome is what the last event says.
func outcome(last []byte) (*runResult, error) {
	ev, err := agui.DecodeEvent(last)
	if err != nil {
		return nil, err
	}
	result := &runResult{Outcome: string(agui.OutcomeSuccess), Usage: []holdfast.Usage{}}
	switch ev := ev.(type) {
	case agui.RunError:
		result.Outcome = outcomeError
		result.Error = &runError{Code: ev.Code, Message: ev.Message}
		result.Usage = append(result.Usage, ev.Usage...)
	case agui.RunFinished:
		if ev.Outcome != nil {
			result.Outcome = string(ev.Outcome.Type)
			result.Interrupts, result.PendingToolCallIDs = ev.Outcome.Interrupts, ev.Outcome.PendingToolCallIDs
		}
		result.Usage = append(result.Usage, ev.Usage...)
	}
	return result, nil
}

// goesOn is the error of a request that could not wait for the end of its run.
// Whatever went wrong, the run was accepted, so what to do next is the same.
func goesOn(err error, reply *agui.Reply) error {
	e := holdfast.AsError(err)
	message := e.Message
	if e.Code == holdfast.CodeStreamCut {
		message = "This connection ends before its run does; the run goes on."
	}
	return holdfast.Errorf(e.Code, "%s", message).
		WithHint("POST the same body with the same runId again: nothing is started twice, and the answer comes when the run has ended. To watch it, GET /threads/{thread}/stream.").
		With("threadId", reply.ThreadID).With("runId", reply.RunID).Wrap(err)
}
