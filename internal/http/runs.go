package http

import (
	"net/http"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/traceparent"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// The routes of runs: to start one, to watch one and to cancel one.

// postRun is POST /runs and POST /agents/{agent}/runs.
func (h *handler) postRun(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	if err := noIfMatch(r, runNeedsNoETag); err != nil {
		return err
	}
	asJSON, err := wantsJSON(r.Header.Values("Accept"))
	if err != nil {
		return err
	}
	body, err := h.bodies.read(w, r)
	if err != nil {
		return err
	}
	return h.run(w, r, who, runRequest{agent: param(r, "agent"), body: body, asJSON: asJSON})
}

// runRequest is a request for a run, by whatever route it came.
type runRequest struct {
	agent  string // empty for the default one
	body   []byte // a RunAgentInput
	asJSON bool   // answer with one object instead of a stream
	chat   bool   // see agui.RunAgentInput
}

// run starts, resumes, attaches to or hydrates a run, and answers.
func (h *handler) run(w http.ResponseWriter, r *http.Request, who holdfast.Principal, req runRequest) error {
	endTurn, err := h.turns.take(r.Context(), who.Tenant, len(req.body))
	if err != nil {
		return err
	}
	defer endTurn()
	in, err := agui.DecodeInput(req.body)
	if err != nil {
		return err
	}
	in.Chat, in.Traceparent = req.chat, traceparent.Parse(r.Header.Values(traceparent.Header))
	o, err := h.open(r, who)
	if err != nil {
		return err
	}
	defer o.close()
	if req.asJSON && in.ProtocolVersion == "" {
		// The JSON object has no dialects: it says what the one before 1.0 cannot.
		in.ProtocolVersion = agui.ProtocolVersion
	}
	reply, err := h.Runs.Post(o.ctx, who, req.agent, in)
	note(r, in.ThreadID, in.RunID) // only now, because the run's id may be made up
	if err != nil {
		return err
	}
	endTurn()
	h.bodies.letGo(recorderOf(r)) // what follows takes as long as the run
	if req.asJSON {
		return h.answer(w, r, who, reply)
	}
	h.stream(w, r, o, reply)
	return nil
}

// getEvents is GET /threads/{thread}/runs/{run}/events: replay from a cursor and
// follow.
func (h *handler) getEvents(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	after, dialect, err := streamParams(r)
	if err != nil {
		return err
	}
	o, err := h.open(r, who)
	if err != nil {
		return err
	}
	defer o.close()
	reply, err := h.Runs.Events(o.ctx, who, param(r, "thread"), param(r, "run"), after, dialect)
	if err != nil {
		return err
	}
	if reply == nil {
		// The run has ended and the client has all of it; 204 tells an EventSource not to
		// reconnect.
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	h.stream(w, r, o, reply)
	return nil
}

// getStream is GET /threads/{thread}/stream: attach a client that knows nothing.
func (h *handler) getStream(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	_, dialect, err := streamParams(r)
	if err != nil {
		return err
	}
	o, err := h.open(r, who)
	if err != nil {
		return err
	}
	defer o.close()
	reply, err := h.Runs.Attach(o.ctx, who, param(r, "thread"), dialect)
	if err != nil {
		return err
	}
	h.stream(w, r, o, reply)
	return nil
}

// streamParams reads the cursor and the dialect. Last-Event-ID takes precedence over
// ?after=, because a browser sends it when it reconnects to the same URL. The dialect
// is 1.0 unless ?protocolVersion= says "none".
func streamParams(r *http.Request) (store.Cursor, agui.Dialect, error) {
	id := r.Header.Get("Last-Event-ID")
	if id == "" {
		id = r.URL.Query().Get("after")
	}
	cursor, err := store.ParseCursor(id)
	if err != nil {
		return cursor, 0, holdfast.Errorf(codes.InvalidInput, "The cursor cannot be read.").
			WithHint(`It is the id of the last event received, like "12-x7k2ab"; leave it out to start at the beginning of the run.`).Wrap(err)
	}
	switch r.URL.Query().Get("protocolVersion") {
	case "none":
		return cursor, agui.DialectLegacy, nil
	default:
		return cursor, agui.DialectV1, nil
	}
}

// postCancel is POST /threads/{thread}/runs/{run}/cancel.
func (h *handler) postCancel(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	if err := noIfMatch(r, cancelNeedsNoETag); err != nil {
		return err
	}
	info, err := h.Runs.Cancel(r.Context(), who, param(r, "thread"), param(r, "run"))
	if err != nil {
		return err
	}
	code := http.StatusOK
	if info.Status == threads.StatusRunning {
		code = http.StatusAccepted
	}
	writeJSON(w, code, info)
	return nil
}
