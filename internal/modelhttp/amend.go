package modelhttp

// Values that a provider gave with earlier answers, and refuses to take back: signatures and
// encrypted reasoning are valid only for the same organization, and for some models only while
// nothing before them has changed. A thread that sends them for ever would fail for ever.

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/holdfast-agents/holdfast"
)

// NoticeReasoningRefused is the name of the notice that the provider did not take back what
// it gave with earlier answers, so that the model is asked without it.
const NoticeReasoningRefused = "holdfast.reasoning_refused"

// Amend returns what to send instead of a request that was refused, and by which client;
// a nil body if nothing else would be taken. It is asked again if that is refused too.
type Amend func(refused *holdfast.ModelError) (*Client, *Body)

// StreamAmended is Stream, but a request that the provider refuses before it has said
// anything is amended.
func (c *Client) StreamAmended(
	ctx context.Context, path string, body *Body, yield func(holdfast.Delta, error) bool, parser func(*Answer) Parser,
	amend Amend,
) {
	for said := false; body != nil; {
		now, sent := c, body
		body = nil
		now.Stream(ctx, path, sent, func(d holdfast.Delta, err error) bool {
			var refused *holdfast.ModelError
			if !said && errors.As(err, &refused) {
				if c, body = amend(refused); body != nil {
					return false
				}
			}
			said = true
			return yield(d, err)
		}, parser)
		if body != nil {
			// Outside a run nobody reads it.
			_ = holdfast.Notify(ctx, NoticeReasoningRefused,
				map[string]any{"provider": now.Provider, "model": now.Model})
		}
	}
}

// With returns a client that sends one more header, behind what it has in it so far.
func (c *Client) With(name, value string) *Client {
	other := *c
	other.header = c.header.Clone()
	if have := other.header.Get(name); have != "" {
		value = have + "," + value
	}
	other.header.Set(name, value)
	return &other
}

// Given reports whether a member is there and not null.
func Given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
