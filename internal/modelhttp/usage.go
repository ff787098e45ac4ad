package modelhttp

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
)

// maxTokens bounds a count of tokens: no call takes more, and sums of it do not overflow.
const maxTokens = 1_000_000_000_000

// count returns a count that is reported, within bounds; nil if it is negative, which says
// nothing.
func count(n *int64) *int64 {
	if n == nil || *n < 0 {
		return nil
	}
	bounded := min(*n, maxTokens)
	return &bounded
}

// Sum adds the counts that are reported; nil if none is.
func Sum(counts ...*int64) *int64 {
	var sum *int64
	for _, n := range counts {
		if n = count(n); n == nil {
			continue
		}
		if sum != nil {
			*n += *sum
		}
		sum = count(n)
	}
	return sum
}

// Total returns a usage with its counts within bounds, and with the total if the provider
// reports none.
func Total(u *holdfast.Usage) *holdfast.Usage {
	for _, n := range []**int64{&u.InputTokens, &u.OutputTokens, &u.TotalTokens, &u.ReasoningTokens, &u.CachedInput,
		&u.CacheWriteInput} {
		*n = count(*n)
	}
	if u.TotalTokens == nil && u.InputTokens != nil && u.OutputTokens != nil {
		u.TotalTokens = Sum(u.InputTokens, u.OutputTokens)
	}
	return u
}

// Spent passes on what is known of the usage of an answer that has failed, since it was
// paid for, and returns the failure.
func (a *Answer) Spent(err error, usage func() *holdfast.Usage) error {
	var failed *holdfast.ModelError
	if err == nil || a.finished || !errors.As(err, &failed) {
		return err
	}
	if u := usage(); u != nil {
		if err := a.Emit(holdfast.Delta{Usage: u}); err != nil {
			return err
		}
	}
	return err
}

// maxName bounds the name of a model, in bytes: it is stored with the usage.
const maxName = 256

// NameOf returns the name of the model that answered: the provider's, or else the one that
// was asked.
func (c *Client) NameOf(said string) string {
	return cmp.Or(strings.ToValidUTF8(said[:min(len(said), maxName)], ""), c.Model)
}

// NoticeContentLeftOut is the name of the notice that a model was not shown all parts of
// the conversation's newest messages, because it cannot take them.
const NoticeContentLeftOut = "holdfast.content_left_out"

// SayLeftOut reports in the run's stream and log which parts of the newest messages the
// model cannot take. It is said once: not again for later iterations or attempts.
func (c *Client) SayLeftOut(ctx context.Context, req *holdfast.ModelRequest, left []LeftPart) {
	if req.Attempt > 0 {
		return
	}
	first := len(req.Messages)
	for first > 0 && req.Messages[first-1].Role != holdfast.RoleAssistant {
		first--
	}
	var kinds []string
	for _, p := range left {
		if p.Message >= first && !slices.Contains(kinds, p.Kind) {
			kinds = append(kinds, p.Kind)
		}
	}
	if len(kinds) > 0 {
		// Outside a run nobody reads it.
		_ = holdfast.Notify(ctx, NoticeContentLeftOut,
			map[string]any{"provider": c.Provider, "model": c.Model, "content": kinds})
	}
}

// LeftPart is a part of a message that a model cannot take.
type LeftPart struct {
	// Message is the index of the message in the request.
	Message int
	// Kind is what it is, such as "audio of type audio/wav".
	Kind string
}
