package middleware

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/holdfast-agents/holdfast"
)

// How large results are shown: cut by the same rule each time, because a message that changed
// between two requests would not be found in the provider's cache.

// LargeResults shows the model large results of tools in part: the beginning and the end, and
// a note that says how to read the rest. It brings the tool [ReadResult] for that. The whole
// result is stored, and people see all of it. The same result always looks the same to the
// model.
//
// The server gives this middleware to every agent that has neither it nor a tool of that
// name. Unlike [ToolResultLimit] it loses nothing. List it before a [HistoryWindow], which
// then measures what is really shown.
func LargeResults(o LargeResultsOptions) holdfast.Middleware {
	mustBeValid("LargeResults", o)
	m := holdfast.Middleware{Name: "holdfast.large_results"}
	if o.Off {
		return m
	}
	l := &largeResults{o.withDefaults()}
	m.Model, m.Tools = l.model, []holdfast.Tool{l.tool()}
	return m
}

// LargeResultsOptions are the options of [LargeResults].
type LargeResultsOptions struct {
	// MaxBytes is how long a result's text may be to be shown whole; default 64 KiB. Of a
	// longer one the model is shown an eighth of that from its beginning, and a thirty-second
	// from its end.
	MaxBytes int `json:"maxBytes,omitempty"`
	// Off shows all results whole. It is for agents that are not to have the middleware that
	// the server gives them.
	Off bool `json:"off,omitempty"`
}

func (o LargeResultsOptions) withDefaults() LargeResultsOptions {
	if o.MaxBytes == 0 {
		o.MaxBytes = 64 << 10
	}
	return o
}

// Validate says what is wrong with the options, and what to write instead.
func (o LargeResultsOptions) Validate() error {
	switch {
	case o.Off && o.MaxBytes != 0:
		return errors.New("maxBytes is set although off is true; leave one of them out")
	case o.withDefaults().MaxBytes < minLarge:
		return fmt.Errorf("maxBytes is %d; write at least %d, or off: true to show all results whole", o.MaxBytes,
			minLarge)
	}
	return nil
}

// minLarge is the least bound that makes sense: the note has about 200 bytes itself.
const minLarge = 1 << 10

type largeResults struct{ LargeResultsOptions }

// model is the Model hook.
func (l *largeResults) model(next holdfast.ModelCall) holdfast.ModelCall {
	return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		all := holdfast.HistoryFrom(ctx)
		if all == nil {
			all = req.Messages
		}
		first := slices.IndexFunc(all, func(m holdfast.Message) bool { return l.isLarge(&m) })
		r := *req
		if first < 0 {
			r.Tools = slices.DeleteFunc(slices.Clone(req.Tools), func(t holdfast.ToolSpec) bool {
				return t.Name == ReadResult
			})
			return next(ctx, &r)
		}
		// The tool is there from the first large result on. That changes the beginning of
		// requests, so this call says so.
		if !slices.ContainsFunc(all[first:], func(m holdfast.Message) bool {
			return m.Role == holdfast.RoleAssistant
		}) {
			r.Cut = cutTools
		}
		r.Messages = slices.Clone(req.Messages)
		for i := range r.Messages {
			if l.isLarge(&r.Messages[i]) {
				l.shorten(&r.Messages[i])
			}
		}
		return next(ctx, &r)
	}
}

// isLarge reports whether a message is a result that is not shown whole. Its media are
// not counted: they are shown as they are.
func (l *largeResults) isLarge(m *holdfast.Message) bool {
	if m.Role != holdfast.RoleTool {
		return false
	}
	n := len(m.Text)
	for i := range m.Parts {
		if m.Parts[i].Type == holdfast.PartText {
			n += len(m.Parts[i].Text)
		}
	}
	return n > l.MaxBytes || len(m.Error) > l.MaxBytes
}

// shorten leaves out the middle of a large result. The shortened message depends on nothing
// but the message and the bound, so that requests begin as the ones before did.
func (l *largeResults) shorten(m *holdfast.Message) {
	if len(m.Error) > l.MaxBytes {
		m.Error = l.short(m.CallID, m.Error)
	}
	text := m.PlainText()
	switch {
	case len(text) <= l.MaxBytes:
	case len(m.Parts) == 0:
		m.Text = l.short(m.CallID, text)
	default:
		whole := m.Parts
		m.Parts = nil
		for _, p := range whole {
			if p.Type != holdfast.PartText {
				m.Parts = append(m.Parts, p)
			} else if text != "" {
				p.Text, text = l.short(m.CallID, text), ""
				m.Parts = append(m.Parts, p)
			}
		}
	}
}

// noteLarge stands in the place of the middle of a result.
const noteLarge = "%s\n[The middle of this result is left out: the first %d and the last %d of its %d bytes are " +
	"shown. To read on, call %s with %s.]\n%s"

// short returns the beginning and the end of a text, and how to read the rest.
func (l *largeResults) short(call, text string) string {
	head, tail := prefix(text, l.MaxBytes/8), suffix(text, l.MaxBytes/32)
	// The value is text and a number, which cannot fail.
	arguments, _ := json.Marshal(readArguments{Call: call, Offset: len(head)})
	return fmt.Sprintf(noteLarge, head, len(head), len(tail), len(text), ReadResult, arguments, tail)
}
