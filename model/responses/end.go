package responses

import (
	"encoding/json"
	"errors"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// usage is the API's count of tokens. Its input includes what was read from the cache and
// written to it, its output the reasoning.
type usage struct {
	Input        *int64 `json:"input_tokens"`
	Output       *int64 `json:"output_tokens"`
	Total        *int64 `json:"total_tokens"`
	InputDetails struct {
		Cached  *int64 `json:"cached_tokens"`
		Written *int64 `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputDetails struct {
		Reasoning *int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

// The states of a response that has ended.
const (
	completed  = "completed"
	incomplete = "incomplete"
	failed     = "failed"
)

// end ends the answer, with its last delta if it is one. Some servers have the state only
// in the response.
func (a *answer) end(state string, raw json.RawMessage) error {
	var r response
	if err := json.Unmarshal(raw, &r); err != nil {
		return a.Undecodable(err)
	}
	if state == completed && r.Status != "" {
		state = r.Status
	}
	switch {
	case state == failed || modelhttp.Given(r.Error):
		if !modelhttp.Given(r.Error) {
			return a.Fail(modelhttp.Failure{Message: "the response failed without a reason"})
		}
		return a.fail(r.Error)
	case state != completed && state != incomplete:
		return a.Malformed("The model's provider broke off its answer.",
			errors.New("the response is not complete: it is in another state"))
	}
	if a.Said() == 0 && a.calls == 0 { // a server that sends nothing but the whole
		for i, item := range r.Output {
			if err := a.item(i, item, true); err != nil {
				return err
			}
		}
	}
	for _, it := range a.items {
		if state == completed && len(it.arguments) > 0 && !it.begun {
			return a.Malformed("The model made a tool call without a name.", errNameless)
		}
	}
	if err := a.Emit(holdfast.Delta{Usage: a.total(&r), Finish: a.reason(state, r.Incomplete.Reason)}); err != nil {
		return err
	}
	return modelhttp.ErrComplete
}

// reason returns why the model stopped. A filter that cut a call off counts as a limit:
// such a call never starts.
func (a *answer) reason(state, why string) holdfast.FinishReason {
	switch {
	case state == incomplete && (why != "content_filter" || a.calls > 0):
		return holdfast.FinishLength
	case state == incomplete, a.refused:
		return holdfast.FinishFilter
	case a.calls > 0:
		return holdfast.FinishToolCalls
	}
	return holdfast.FinishStop
}

// total returns the usage as Holdfast counts it.
func (a *answer) total(r *response) *holdfast.Usage {
	u := r.Usage
	if u == nil {
		return nil
	}
	return modelhttp.Total(&holdfast.Usage{
		Provider:        provider,
		Model:           a.model.client.NameOf(r.Model),
		InputTokens:     u.Input,
		OutputTokens:    u.Output,
		TotalTokens:     u.Total,
		ReasoningTokens: u.OutputDetails.Reasoning,
		CachedInput:     u.InputDetails.Cached,
		CacheWriteInput: u.InputDetails.Written,
	})
}
