package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/model/anthropic"
	"github.com/holdfast-agents/holdfast/model/gemini"
	"github.com/holdfast-agents/holdfast/model/openai"
	"github.com/holdfast-agents/holdfast/model/responses"
	"github.com/holdfast-agents/holdfast/sharedstate"
)

// prompted are agents whose models are asked at a fake provider, one for each API, and the
// agent clock, whose prompts begin with the time.
func (w *worker) prompted(provider string) ([]holdfast.Agent, error) {
	if provider == "" {
		return nil, nil
	}
	var agents []holdfast.Agent
	add := func(name string, m holdfast.Model, err error) error {
		if err != nil {
			return fmt.Errorf("the model of %s: %w", name, err)
		}
		agents = append(agents, holdfast.Agent{
			Name:         name,
			Model:        m,
			Instructions: "Be kind, <brief> & exact.",
			State:        &sharedstate.Options{Show: "all"},
			Tools:        w.noting(),
			Middleware:   []holdfast.Middleware{askFirst()},
		})
		return nil
	}
	chat, err := openai.New(openai.Options{
		Model:   "m1",
		Key:     "k",
		BaseURL: provider,
		Params:  map[string]any{"temperature": 0.5, "max_tokens": 100},
	})
	if err := add("openai", chat, err); err != nil {
		return nil, err
	}
	items, err := responses.New(responses.Options{Model: "m1", Key: "k", BaseURL: provider})
	if err := add("responses", items, err); err != nil {
		return nil, err
	}
	// In one of them the client's instructions are shown as the user's.
	agents[1].Client = holdfast.ClientPolicy{Context: "user", Instructions: "user"}
	blocks, err := anthropic.New(anthropic.Options{Model: "m1", Key: "k", BaseURL: provider})
	if err := add("anthropic", blocks, err); err != nil {
		return nil, err
	}
	parts, err := gemini.New(gemini.Options{Model: "m1", Key: "k", BaseURL: provider})
	if err := add("gemini", parts, err); err != nil {
		return nil, err
	}
	if err := add("clock", blocks, nil); err != nil {
		return nil, err
	}
	agents[len(agents)-1].Middleware = append(agents[len(agents)-1].Middleware, clock())
	return agents, nil
}

// clock says the time where it changes the whole prompt.
func clock() holdfast.Middleware {
	return holdfast.Middleware{Name: "test.clock", Model: func(next holdfast.ModelCall) holdfast.ModelCall {
		return func(ctx context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
			late := *req
			late.Instructions = append([]string{"It is " + time.Now().Format(time.RFC3339Nano)}, req.Instructions...)
			return next(ctx, &late)
		}
	}}
}

// noting are the tools of these agents. They are not in the order of their names.
func (w *worker) noting() []holdfast.Tool {
	type args struct {
		N    float64         `json:"n,omitempty"`
		Text string          `json:"text,omitempty"`
		More json.RawMessage `json:"more,omitempty"`
	}
	tool := func(name string, effect holdfast.Effect, do func(ctx context.Context, a args) error) holdfast.Tool {
		return holdfast.NewTool(name, "A <tool> of the tests.", func(ctx context.Context, a args) (string, error) {
			time.Sleep(w.delay)
			return fmt.Sprintf(`{"said": %q, "n": %v}`, a.Text, a.N), do(ctx, a)
		}, holdfast.WithEffect(effect))
	}
	nothing := func(context.Context, args) error { return nil }
	return []holdfast.Tool{
		tool("note", holdfast.EffectIdempotent, func(ctx context.Context, a args) error {
			return holdfast.UpdateState(ctx, func(json.RawMessage) (json.RawMessage, error) { return json.Marshal(a) })
		}),
		tool("look", holdfast.EffectPure, nothing), tool("delicate", holdfast.EffectIdempotent, nothing),
		tool("fail", holdfast.EffectPure, func(context.Context, args) error { return errBroken }),
	}
}
