package decide

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

// The values of a [holdfast.Policy].
const (
	policyReject       = "reject"
	policyCancelAndRun = "cancel_and_run"
	policyDecline      = "decline"
	policyAbandon      = "abandon"
)

// Policy is what the agent and the request chose, for the cases in which a POST could
// mean more than one thing.
type Policy struct {
	holdfast.Policy
	// Branch lets the messages sent begin a new branch of the history.
	Branch bool `json:"branch,omitempty"`
	// Whole says that the messages sent are all that the person sees, so that a list with
	// nothing of the history is a new beginning, and not only what is new.
	Whole bool `json:"whole,omitempty"`
	// AllowStale continues although the history is not the one that the head was
	// written for.
	AllowStale bool `json:"allowStale,omitempty"`
	// Since is the id of a message: the client shows it, and everything before it, as the
	// server has sent it. These messages are not sent again.
	Since string `json:"since,omitempty"`
	// StateVersion is the version of the shared state that the client had when it changed it;
	// empty if it does not say.
	StateVersion string `json:"stateVersion,omitempty"`
}

// PolicyOf joins the agent's policy with forwardedProps.holdfast, the only place where a
// request can choose. With chat the default is the policy chat, as it is on the routes of
// frontends. The error is an invalid_input that says what is allowed.
func PolicyOf(a *holdfast.Agent, chat bool, props json.RawMessage) (Policy, error) {
	p := Policy{Policy: a.Policy}
	p.Chat = p.Chat || chat
	if err := p.read(props); err != nil {
		return p, err
	}
	if p.Chat {
		p.Branch = true
		p.OnBusy = cmp.Or(p.OnBusy, policyCancelAndRun)
		p.OnInterrupted = cmp.Or(p.OnInterrupted, policyDecline)
		p.OnUnfinished = cmp.Or(p.OnUnfinished, policyAbandon)
	}
	return p, nil
}

// read takes over what the request chose.
func (p *Policy) read(props json.RawMessage) error {
	var outer struct {
		Holdfast json.RawMessage `json:"holdfast"`
	}
	// Other applications' props may have any shape; only ours is read.
	if json.Unmarshal(props, &outer) != nil || len(outer.Holdfast) == 0 {
		return nil
	}
	if err := json.Unmarshal(outer.Holdfast, p); err != nil {
		return holdfast.Errorf(codes.InvalidInput, "forwardedProps.holdfast cannot be read.").
			WithHint(hintOptions).With("field", "forwardedProps.holdfast").Wrap(err)
	}
	if err := knownOptions(outer.Holdfast); err != nil {
		return err
	}
	for _, c := range []struct{ name, value, other string }{
		{"onBusy", p.OnBusy, policyCancelAndRun},
		{"onInterrupted", p.OnInterrupted, policyDecline},
		{"onUnfinished", p.OnUnfinished, policyAbandon},
	} {
		if c.value != "" && c.value != policyReject && c.value != c.other {
			return holdfast.Errorf(codes.InvalidInput, "forwardedProps.holdfast.%s has an unknown value.", c.name).
				WithHint("Use %q or %q.", policyReject, c.other)
		}
	}
	return nil
}

// hintOptions says what forwardedProps.holdfast may hold.
const hintOptions = `It is an object with onBusy, onInterrupted, onUnfinished, since, stateVersion (strings), chat, ` +
	`branch, whole and allowStale (true or false).`

// knownOptions refuses a member that would be ignored, such as one with a typing mistake:
// who sends it relies on it.
func knownOptions(options json.RawMessage) error {
	members := map[string]json.RawMessage{}
	// A value that is not an object at this point is null, which chooses nothing.
	_ = json.Unmarshal(options, &members)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		switch name {
		case "onBusy", "onInterrupted", "onUnfinished", "chat", "branch", "whole", "allowStale", "since",
			"stateVersion":
		default:
			field := fmt.Sprintf("forwardedProps.holdfast.%.64s", name)
			return holdfast.Errorf(codes.InvalidInput, "There is no option %s.", field).
				WithHint(hintOptions).
				With("field", field)
		}
	}
	return nil
}
