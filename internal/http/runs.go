package http

import (
	"net/http"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/headers"
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
	side   bool   // as well
}

// run starts, resumes, attaches to or hydrates a run, and answers.
func (h *handler) run(w http.ResponseWriter, r *http.Request, who holdfast.Principal, req runRequest) error {
	endTurn, err := h.turns.take(r.Context(), who, len(req.body))
	if err != nil {
		return err
	}
	defer endTurn()
	asked, err := readCursors(r)
	if err != nil {
		return err
	}
	in, err := agui.DecodeInput(req.body)
	if err != nil {
		return err
	}
	in.Chat, in.Side, in.Traceparent = req.chat, req.side, headers.ParseTraceparent(
		r.Header.Values(headers.Traceparent),
	)
	o, err := h.open(r, who)
	if err != nil {
		return err
	}
	defer o.close()
	if !req.asJSON { // which is about the whole run
		in.After = agui.Position(asked.after)
	}
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
	return asked.answer(h, w, r, o, reply)
}

// getEvents is GET /threads/{thread}/runs/{run}/events: replay from a cursor and
// follow.
func (h *handler) getEvents(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	return getRest(h, w, r, who, param(r, "run"))
}

// getStream is GET /threads/{thread}/stream: attach a client that knows nothing, or go on
// after its cursor.
func (h *handler) getStream(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	return getRest(h, w, r, who, "")
}

// getRest sends what a client is missing of a run; without a name, of the thread's current one.
func getRest(h *handler, w http.ResponseWriter, r *http.Request, who holdfast.Principal, run string) error {
	asked, err := readCursors(r)
	if err != nil {
		return err
	}
	o, err := h.open(r, who)
	if err != nil {
		return err
	}
	defer o.close()
	var reply *agui.Reply
	if run == "" {
		reply, err = asked.attach(o.ctx, h.Runs, who, param(r, "thread"), dialectOf(r))
	} else {
		reply, err = h.Runs.Events(o.ctx, who, param(r, "thread"), run, asked.after, dialectOf(r))
	}
	if err != nil {
		return err
	}
	return asked.answer(h, w, r, o, reply)
}

// dialectOf returns the dialect that a GET asks for: 1.0 unless ?protocolVersion= says "none".
func dialectOf(r *http.Request) agui.Dialect {
	if r.URL.Query().Get("protocolVersion") == "none" {
		return agui.DialectLegacy
	}
	return agui.DialectV1
}

// postCancel is POST /threads/{thread}/runs/{run}/cancel.
func (h *handler) postCancel(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	if err := noIfMatch(r, cancelNeedsNoETag); err != nil {
		return err
	}
	info, err := h.Cancel(r.Context(), who, param(r, "thread"), param(r, "run"))
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
