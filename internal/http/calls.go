package http

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
	"github.com/holdfast-agents/holdfast/threads"
)

// Calls finishes calls from outside.
type Calls interface {
	// Finish gives a call its result, on behalf of a caller.
	Finish(
		ctx context.Context,
		who holdfast.Principal,
		thread, call string,
		r threads.OutsideResult,
	) (*threads.FinishedCall, error)
	// Expects returns an error for a token that is of no call's one-time URL.
	Expects(ctx context.Context, token string) error
	// FinishByToken gives the call that the token of a one-time URL is for its result.
	FinishByToken(ctx context.Context, token string, r threads.OutsideResult) (*threads.FinishedCall, error)
}

// callAPI has the routes of calls that are finished from outside.
type callAPI struct {
	calls  Calls
	bodies *exchange.Receiver
}

// routes are those by which calls are finished.
func (a *callAPI) routes() []route {
	return []route{
		{
			method:    "POST",
			path:      "/threads/{thread}/calls/{call}/result",
			do:        a.postResult,
			noIfMatch: finishNeedsNoETag,
			asks:      true,
			id:        "finishCall",
			body:      "CallResult",
			summary:   "Give a call that is finished from outside its result. For services: see docs/tools.md.",
			answers: []answer{
				{
					http.StatusOK,
					"The result was taken; the same result again gets the same answer.",
					typeJSON,
					"FinishedCall",
				},
			},
			errors: finishErrors,
		},
		{
			method:    "POST",
			path:      "/calls",
			do:        a.postCall,
			noIfMatch: finishNeedsNoETag,
			open:      true,
			id:        "finishCallByURL",
			body:      "CallResult",
			params:    []string{"token"},
			summary:   "The same by the call's one-time URL, without a key.",
			answers: []answer{
				{
					http.StatusOK,
					"The result was taken; the same result again gets the same answer.",
					typeJSON,
					"FinishedCall",
				},
			},
			errors: finishErrors,
		},
	}
}

// postResult is POST /threads/{thread}/calls/{call}/result.
func (a *callAPI) postResult(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	result, err := a.callResult(w, r)
	if err != nil {
		return err
	}
	done, err := a.calls.Finish(r.Context(), who, param(r, "thread"), param(r, "call"), result)
	return exchange.Shown(w, done, err)
}

// postCall is POST /calls?token=. Anyone who has the URL may use it, so the route is open. The
// token is in the query, which no log has.
func (a *callAPI) postCall(w http.ResponseWriter, r *http.Request, _ holdfast.Principal) error {
	token := r.URL.Query().Get("token")
	if token == "" {
		return exchange.Invalid("token", "The token is missing.", "Use the URL as it was given.")
	}
	// Nothing is received from those who only guess.
	if err := a.calls.Expects(r.Context(), token); err != nil {
		return err
	}
	result, err := a.callResult(w, r)
	if err != nil {
		return err
	}
	done, err := a.calls.FinishByToken(r.Context(), token, result)
	return exchange.Shown(w, done, err)
}

// maxResultBody bounds the body that a result comes in, in bytes: escapes, white space and
// the member's name may make it longer than the result.
const maxResultBody = 4 * threads.MaxCallResult

// callResult reads {"result": …} or {"error": "…"}.
func (a *callAPI) callResult(w http.ResponseWriter, r *http.Request) (threads.OutsideResult, error) {
	var in struct {
		Result json.RawMessage `json:"result"`
		Error  *string         `json:"error"`
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxResultBody)
	if err := a.bodies.ReadObject(w, r, &in, "result", "error"); err != nil {
		return threads.OutsideResult{}, err
	}
	switch {
	case (in.Result == nil) == (in.Error == nil):
		return threads.OutsideResult{},
			exchange.Invalid("result", "Either result or error must be there, but not both.",
				`Send {"result": …} with any JSON, or {"error": "what went wrong"}.`)
	case in.Error != nil:
		return threads.OutsideResult{Error: *in.Error, Failed: true}, nil
	}
	return threads.OutsideResult{Result: in.Result}, nil
}
