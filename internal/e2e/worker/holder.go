package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/contract"
	"github.com/holdfast-agents/holdfast/credential"
)

// holder has tools whose calls leave something in the store before they end: a value, a
// question, a doubt, or that they were handed out. Its model makes the one call that a
// person's message is, "tool arguments".
func (w *worker) holder() holdfast.Agent {
	once := holdfast.WithEffect(holdfast.EffectOnce)
	return holdfast.Agent{Name: "holder", Model: holdfast.ModelFunc(callOnce), Tools: []holdfast.Tool{
		holdfast.NewTool("hold", "Keeps a handle, and waits for what it stands for.", w.hold, once),
		holdfast.NewTool(
			"lose",
			"Does not know what became of it.",
			func(ctx context.Context, _ struct{}) (string, error) {
				w.note("lost thread=%s", holdfast.CallFrom(ctx).Thread)
				return "", fmt.Errorf("the connection broke: %w", holdfast.ErrOutcomeUnknown)
			},
			once,
			holdfast.WithInDoubt(holdfast.DoubtAsk),
		),
		holdfast.NewTool("enter", "Needs its user to log in.", w.enter, once),
		holdfast.NewTool("ask", "Wants to know also if the person declines.", ask, once),
		contract.New[struct{}]("forever", "Waits for a result for ever.",
			holdfast.Outside{Result: json.RawMessage(`{"type":"boolean"}`), Deliver: w.deliver}),
		contract.New[struct{}]("brief", "Waits for a result for a moment.",
			holdfast.Outside{ExpiresAfter: time.Second, Deliver: w.deliver}),
	}}
}

func (w *worker) deliver(_ context.Context, call holdfast.OutsideCall) error {
	w.note("delivered thread=%s key=%s url=%s", call.Call.Thread, call.Call.Key, call.URL.Reveal())
	return nil
}

func (w *worker) hold(ctx context.Context, _ struct{}) (string, error) {
	call := holdfast.CallFrom(ctx)
	if call.Kept != nil {
		return "It went on with " + string(call.Kept), nil
	}
	if err := holdfast.Keep(ctx, json.RawMessage(`{"handle":9007199254740993}`)); err != nil {
		return "", err
	}
	w.note("holds thread=%s", call.Thread)
	<-ctx.Done()
	return "", ctx.Err()
}

// enter lets its user in once the folder of places where workers stop has the file let-in.
func (w *worker) enter(context.Context, struct{}) (string, error) {
	if _, err := os.Stat(filepath.Join(w.holds, "let-in")); err != nil {
		return "", &credential.LoginRequired{URL: "https://login.example/"}
	}
	return "You are in.", nil
}

func ask(ctx context.Context, _ struct{}) (string, error) {
	call := holdfast.CallFrom(ctx)
	if call.Answer == nil {
		if err := holdfast.Keep(ctx, json.RawMessage(`"what was asked"`)); err != nil {
			return "", err
		}
		return "", &holdfast.Interrupt{Message: "May I?", TellDeclined: true}
	}
	return fmt.Sprintf("Declined: %t, after %s", call.Answer.Declined, call.Kept), nil
}
