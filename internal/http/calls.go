package http

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/threads"
)

// Calls finishes calls from outside.
type Calls interface {
	// Finish gives a call its result, on behalf of a caller.
	Finish(
		ctx context.Context,
		who holdfast.Principal,
		thread, call string,
		r threads.CallResult,
	) (*threads.FinishedCall, error)
	// Expects returns an error for a token that is of no call's one-time URL.
	Expects(ctx context.Context, token string) error
	// FinishByToken gives the call that the token of a one-time URL is for its result.
	FinishByToken(ctx context.Context, token string, r threads.CallResult) (*threads.FinishedCall, error)
}

// postResult is POST /threads/{thread}/calls/{call}/result.
func postResult(h *handler, w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	if err := noIfMatch(r, finishNeedsNoETag); err != nil {
		return err
	}
	result, err := callResult(h, w, r)
	if err != nil {
		return err
	}
	return answerFinished(w)(h.Calls.Finish(r.Context(), who, param(r, "thread"), param(r, "call"), result))
}

// postCall is POST /calls?token=. Whoever has the URL may use it, so the route is open. The
// token is in the query, which no log has.
func postCall(h *handler, w http.ResponseWriter, r *http.Request, _ holdfast.Principal) error {
	if err := noIfMatch(r, finishNeedsNoETag); err != nil {
		return err
	}
	token := r.URL.Query().Get("token")
	if token == "" {
		return invalid("token", "The token is missing.", "Use the URL as it was given.")
	}
	// Nothing is received from those who only guess.
	if err := h.Calls.Expects(r.Context(), token); err != nil {
		return err
	}
	result, err := callResult(h, w, r)
	if err != nil {
		return err
	}
	return answerFinished(w)(h.Calls.FinishByToken(r.Context(), token, result))
}

// maxResultBody bounds the body that a result comes in, in bytes: escapes, white space and
// the member's name may make it longer than the result.
const maxResultBody = 4 * threads.MaxCallResult

// callResult reads {"result": …} or {"error": "…"}.
func callResult(h *handler, w http.ResponseWriter, r *http.Request) (threads.CallResult, error) {
	var in struct {
		Result json.RawMessage `json:"result"`
		Error  *string         `json:"error"`
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxResultBody)
	if err := h.readObject(w, r, &in, "result", "error"); err != nil {
		return threads.CallResult{}, err
	}
	switch {
	case (in.Result == nil) == (in.Error == nil):
		return threads.CallResult{}, invalid(
			"result",
			"Either result or error must be there, but not both.",
			`Send {"result": …} with any JSON, or {"error": "what went wrong"}.`,
		)
	case in.Error != nil:
		return threads.CallResult{Error: *in.Error, Failed: true}, nil
	}
	return threads.CallResult{Result: in.Result}, nil
}

func answerFinished(w http.ResponseWriter) func(*threads.FinishedCall, error) error {
	return func(done *threads.FinishedCall, err error) error {
		if err == nil {
			writeJSON(w, http.StatusOK, done)
		}
		return err
	}
}
