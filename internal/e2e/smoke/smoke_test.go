// Package smoke asks the real providers, those whose key is in the environment. It costs
// money and needs the network, so that it does so only for `make smoke`; it is the one
// test that may skip.
package smoke

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/model/anthropic"
	"github.com/holdfast-agents/holdfast/model/gemini"
	"github.com/holdfast-agents/holdfast/model/openai"
	"github.com/holdfast-agents/holdfast/model/responses"
)

// candidates are a model of each provider. A variable replaces its name.
var candidates = []struct {
	name, key, variable, model string
	// reasons: the model gives something of its reasoning that it needs back.
	reasons bool
	open    func(model string) (holdfast.Model, error)
	// wrongKey opens it with a key that the provider cannot know.
	wrongKey func(model string) (holdfast.Model, error)
}{
	{
		"responses", "OPENAI_API_KEY", "SMOKE_RESPONSES_MODEL", "gpt-6-luna", true,
		func(model string) (holdfast.Model, error) {
			return responses.New(responses.Options{
				Model:  model,
				Params: map[string]any{"reasoning": map[string]any{"effort": "medium", "summary": "auto"}},
			})
		},
		func(model string) (holdfast.Model, error) {
			return responses.New(responses.Options{Model: model, Key: "wrong"})
		},
	},
	{
		"openai", "OPENAI_API_KEY", "SMOKE_OPENAI_MODEL", "gpt-6-luna", false,
		func(model string) (holdfast.Model, error) {
			return openai.New(openai.Options{Model: model, Params: map[string]any{"reasoning_effort": "none"}})
		},
		func(model string) (holdfast.Model, error) {
			return openai.New(openai.Options{Model: model, Key: "wrong"})
		},
	},
	{
		"anthropic", "ANTHROPIC_API_KEY", "SMOKE_ANTHROPIC_MODEL", "claude-sonnet-5-5", true,
		func(model string) (holdfast.Model, error) {
			return anthropic.New(anthropic.Options{
				Model: model,
				Params: map[string]any{
					"max_tokens": 4096,
					"thinking":   map[string]any{"type": "adaptive", "display": "summarized"},
				},
			})
		},
		func(model string) (holdfast.Model, error) {
			return anthropic.New(anthropic.Options{Model: model, Key: "wrong"})
		},
	},
	{
		"gemini", "GEMINI_API_KEY", "SMOKE_GEMINI_MODEL", "gemini-3.8-flash", true,
		func(model string) (holdfast.Model, error) {
			return gemini.New(gemini.Options{
				Model: model,
				Params: map[string]any{
					"generationConfig": map[string]any{"thinkingConfig": map[string]any{"includeThoughts": true}},
				},
			})
		},
		func(model string) (holdfast.Model, error) {
			return gemini.New(gemini.Options{Model: model, Key: "wrong"})
		},
	},
}

// TestProviders: a question that needs a tool, its result, and the answer, with what the
// provider needs back in between; then the history at another key, and a wrong key.
func TestProviders(t *testing.T) {
	if os.Getenv("HOLDFAST_SMOKE") == "" {
		t.Skip("make smoke asks the real providers")
	}
	missing := map[string]bool{}
	for _, c := range candidates {
		t.Run(c.name, func(t *testing.T) {
			if os.Getenv(c.key) == "" {
				missing[c.key] = true
				t.Skipf("%s is not set", c.key)
			}
			name := c.model
			if other := os.Getenv(c.variable); other != "" {
				name = other
			}
			m, err := c.open(name)
			if err != nil {
				t.Fatal(err)
			}
			converse(t, m, c.reasons)
			if m, err = c.wrongKey(name); err != nil {
				t.Fatal(err)
			}
			var refused *holdfast.ModelError
			if _, err := ask(t, m, request(nil)); !errors.As(err, &refused) || refused.Kind != failure.Auth {
				t.Errorf("with a wrong key: %v", err)
			}
		})
	}
	for key := range missing {
		t.Logf("%s is not set: its providers were not asked", key)
	}
	if len(missing) == 3 {
		t.Skip("no provider was asked: set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY")
	}
}

// request asks for a sum with a tool, behind what was said so far.
func request(said []holdfast.Message) *holdfast.ModelRequest {
	return &holdfast.ModelRequest{
		Thread: "smoke",
		Instructions: []string{
			"Use the tool add for every sum, one call for each, all calls at once. Then answer with the numbers alone.",
		},
		Messages: append(
			[]holdfast.Message{
				{ID: "u1", Role: holdfast.RoleUser, Text: "How much is 1234 + 4321, and how much is 1111 + 2222?"},
			},
			said...),
		Tools: []holdfast.ToolSpec{
			{
				Name:        "add",
				Description: "Adds two numbers.",
				Parameters: json.RawMessage(`{"type":"object","properties":{"a":{"type":"number"},` +
					`"b":{"type":"number"}},"required":["a",` +
					`"b"],"additionalProperties":false}`),
			},
		},
	}
}

// converse has the whole conversation.
func converse(t *testing.T, m holdfast.Model, reasons bool) {
	t.Helper()
	said, err := ask(t, m, request(nil))
	if err != nil {
		t.Fatal(err)
	}
	answer := said[len(said)-1]
	if len(answer.Calls) == 0 {
		t.Fatalf("it makes no call, but says %q", answer.Text)
	}
	secret := false
	for _, message := range said {
		secret = secret || message.EncryptedValue != ""
	}
	for _, c := range answer.Calls {
		secret = secret || c.EncryptedValue != ""
		var args struct{ A, B float64 }
		if err := json.Unmarshal(c.Arguments, &args); err != nil || c.Name != "add" {
			t.Fatalf("it calls %s(%s): %v", c.Name, c.Arguments, err)
		}
		sum, err := json.Marshal(args.A + args.B)
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, holdfast.Message{ID: "t" + c.ID, Role: holdfast.RoleTool, CallID: c.ID, Text: string(sum)})
	}
	if reasons && !secret {
		t.Log("it gives nothing that it needs back, as models do that find a question easy")
	}
	said, err = ask(t, m, request(said))
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.ReplaceAll(said[len(said)-1].Text, ",", ""); !strings.Contains(text, "5555") ||
		!strings.Contains(text, "3333") {
		t.Errorf("it answers %q", text)
	}
}

// ask asks a model, and returns its answer as messages.
func ask(t *testing.T, m holdfast.Model, req *holdfast.ModelRequest) ([]holdfast.Message, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var reasoning []holdfast.Message // with what the provider needs back
	thought := 0
	answer := holdfast.Message{ID: "a1", Role: holdfast.RoleAssistant}
	var usage *holdfast.Usage
	finish := holdfast.FinishReason("")
	for d, err := range m.Stream(ctx, req) {
		if err != nil {
			return nil, err
		}
		answer.Text += d.Text
		thought += len(d.Reasoning)
		if d.ReasoningSecret != "" {
			reasoning = append(reasoning,
				holdfast.Message{Role: holdfast.RoleReasoning, EncryptedValue: d.ReasoningSecret})
		}
		if d.Usage != nil {
			usage = d.Usage
		}
		if d.Call != nil {
			if d.Call.Index == len(answer.Calls) {
				answer.Calls = append(answer.Calls, holdfast.ToolCall{ID: d.Call.ID, Name: d.Call.Name})
			}
			c := &answer.Calls[d.Call.Index]
			c.Arguments = append(c.Arguments, d.Call.Arguments...)
			c.EncryptedValue += d.Call.EncryptedValue
		}
		finish = d.Finish
	}
	for i := range answer.Calls {
		if answer.Calls[i].ID == "" {
			answer.Calls[i].ID = "call_" + string(rune('a'+i)) // as the engine does
		}
	}
	counted, err := json.Marshal(usage)
	if err != nil {
		return nil, err
	}
	t.Logf("%d bytes of reasoning, %d of text, %d calls, %s, %s", thought, len(answer.Text), len(answer.Calls), finish,
		counted)
	if usage == nil || usage.InputTokens == nil || usage.OutputTokens == nil || *usage.InputTokens == 0 ||
		*usage.OutputTokens == 0 {
		t.Errorf("the usage is %s", counted)
	}
	return append(reasoning, answer), nil
}
