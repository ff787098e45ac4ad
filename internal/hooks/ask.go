package hooks

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"

	"github.com/holdfast-agents/holdfast"
)

// Asking is a model call, as the innermost step of the Model hooks sees it: which of the
// agent's models is asked, and whether it was shown less than before. The hooks do not
// know it, because they are one chain for all of the agent's models.
type Asking struct {
	// Model is asked.
	Model holdfast.Model
	// Below, if it is positive, is how large the conversation was that the model has called
	// too long, in bytes. One that is not smaller is not sent.
	Below int
	sent  atomic.Int64
}

// Sent returns how large the last conversation was that a model was sent.
func (a *Asking) Sent() int { return int(a.sent.Load()) }

// ErrNotShrunk is the error of a call that would show the model no less than before.
var ErrNotShrunk = errors.New("no middleware shows the model less of the conversation")

type askingKey struct{}

// ContextWithAsking returns a context for CallModel.
func ContextWithAsking(ctx context.Context, a *Asking) context.Context {
	return context.WithValue(ctx, askingKey{}, a)
}

type startKey struct{}

// ContextWithStart returns a context for CallModel and CallTool. may is called when the hooks
// have come to the model or the tool, which is not started if it returns an error. A hook may
// wait for long before, or call it more than once.
func ContextWithStart(ctx context.Context, may func() error) context.Context {
	return context.WithValue(ctx, startKey{}, may)
}

// mayStart asks what the context has for that.
func mayStart(ctx context.Context) error {
	if may, ok := ctx.Value(startKey{}).(func() error); ok {
		return may()
	}
	return nil
}

// asked is the model at the end of the hooks.
func asked(first holdfast.Model) holdfast.ModelCall {
	return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		a, _ := ctx.Value(askingKey{}).(*Asking)
		if a == nil {
			return formed(ctx, first, req)
		}
		if err := mayStart(ctx); err != nil {
			return func(yield func(holdfast.Delta, error) bool) { yield(holdfast.Delta{}, err) }
		}
		size := sizeOf(req.Messages)
		if a.Below > 0 && size >= a.Below {
			return func(yield func(holdfast.Delta, error) bool) { yield(holdfast.Delta{}, ErrNotShrunk) }
		}
		a.sent.Store(int64(size))
		return formed(ctx, a.Model, req)
	}
}

// sizeOf returns about how large a conversation is, in bytes.
func sizeOf(messages []holdfast.Message) int {
	n := 0
	for i := range messages {
		m := &messages[i]
		n += len(m.Text) + len(m.EncryptedValue)
		for _, p := range m.Parts {
			n += len(p.Text)
			if p.Source != nil {
				n += len(p.Source.Value)
			}
		}
		for _, c := range m.Calls {
			n += len(c.Name) + len(c.Arguments)
		}
	}
	return n
}
