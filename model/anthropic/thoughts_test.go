package anthropic

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/testkit/modeltest"
)

// The provider's error when it does not take thinking back.
const (
	saysBound = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different " +
		"conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\"."
	saysWrong = "messages.1.content.0: Invalid `signature` in `thinking` block"
	saysKept  = "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant " +
		"message cannot be modified."
	saysFirst = "messages.3.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When " +
		"`thinking` is enabled, a final `assistant` message must start with a thinking block."
)

// TestThinkingRefused: a thread whose thinking the provider does not take back goes on
// without it, or without those blocks that the provider finds to be invalid.
func TestThinkingRefused(t *testing.T) {
	t.Parallel()
	const asWhole, asBare = "thinking sent", "no thinking"
	asBound := asWhole + `, asked {"block_binding":{"prefix_mismatch_behavior":"drop_block"},` +
		`"type":"adaptive"}, beta ` +
		bindingBeta
	for name, c := range map[string]struct {
		params  map[string]any
		refusal []string // of the first requests
		want    []string // of two answers
	}{
		"taken": {nil, nil, []string{asWhole, asWhole}},
		"bound": {nil, []string{saysBound},
			[]string{asWhole, asBound, asBound}}, // asked at once from then on
		"bound, but not so": {nil, []string{saysBound, saysWrong}, []string{asWhole, asBound, asBare, asBound}},
		"never taken":       {nil, []string{saysWrong, saysWrong}, []string{asWhole, asBare, asWhole}},
		"another key":       {nil, []string{saysWrong}, []string{asWhole, asBare, asWhole}},
		"changed":           {nil, []string{saysKept}, []string{asWhole, asBare, asWhole}},
		"another model's": {map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": 2048}},
			[]string{saysFirst}, []string{`thinking sent, asked {"budget_tokens":2048,"type":"enabled"}`, asBare,
				`thinking sent, asked {"budget_tokens":2048,"type":"enabled"}`}},
		"another thing wrong": {nil, []string{"thinking: budget_tokens is too small"}, []string{asWhole, asWhole}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log []string
			refusal := c.refusal
			m, err := New(Options{
				Model:  "m1",
				Key:    modeltest.Key,
				Params: c.params,
				HTTP: modeltest.Replies(func(r *http.Request) (int, string) {
					log = append(log, sentThinking(t, r))
					if len(refusal) == 0 {
						return http.StatusOK,
							strings.Join(fake(modeltest.Answer{Text: []string{"so"}, Finish: holdfast.FinishStop}), "")
					}
					said := refusal[0]
					refusal = refusal[1:]
					return http.StatusBadRequest,
						`{"type":"error","error":{"type":"invalid_request_error","message":` +
							modeltest.JSON(said) + `}}`
				}),
			})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				for _, err := range m.Stream(t.Context(), thoughtful(m)) {
					var e *holdfast.ModelError
					if err != nil && (!errors.As(err, &e) || e.Kind != failure.Invalid) {
						t.Errorf("%v", err)
					}
				}
			}
			if got, want := strings.Join(log, "\n"), strings.Join(c.want, "\n"); got != want {
				t.Errorf("sent:\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// thoughtful is a request with an earlier answer that began with thinking.
func thoughtful(m *Model) *holdfast.ModelRequest {
	sealed := m.client.Seal(0, 0, json.RawMessage(`{"type":"thinking","thinking":"hm","signature":"sig"}`))
	return &holdfast.ModelRequest{Messages: []holdfast.Message{
		{
			ID:   "u1",
			Role: holdfast.RoleUser,
			Text: "one",
		},
		{ID: "r1", Role: holdfast.RoleReasoning, EncryptedValue: sealed},
		{ID: "a1", Role: holdfast.RoleAssistant, Text: "1"},
		{ID: "u2", Role: holdfast.RoleUser, Text: "two"},
	}}
}

// sentThinking says what a request has of thinking.
func sentThinking(t *testing.T, r *http.Request) string {
	t.Helper()
	var body struct {
		Thinking json.RawMessage `json:"thinking"`
		Messages json.RawMessage `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		t.Error(err)
	}
	said := "no thinking"
	if strings.Contains(string(body.Messages), `"sig"`) {
		said = "thinking sent"
	}
	if len(body.Thinking) > 0 {
		said += ", asked " + string(body.Thinking)
	}
	if beta := r.Header.Get("Anthropic-Beta"); beta != "" {
		said += ", beta " + beta
	}
	return said
}

// TestThinkingLeadsToSomething: the API refuses an answer whose last block is thinking, which
// is what an answer leaves behind that ended before it said anything.
func TestThinkingLeadsToSomething(t *testing.T) {
	t.Parallel()
	m := testModel(t, map[string]any{"cache_control": map[string]any{"type": "ephemeral"}})
	sealed := func(text int) string {
		return m.client.Seal(text, 0, json.RawMessage(`{"type":"thinking","thinking":"hm","signature":"sig"}`),
			json.RawMessage(`{"type":"redacted_thinking","data":"x"}`))
	}
	one, two := holdfast.Message{
		Role: holdfast.RoleUser,
		Text: "one",
	}, holdfast.Message{
		Role: holdfast.RoleUser,
		Text: "two",
	}
	for name, c := range map[string]struct {
		said []holdfast.Message
		want string
	}{
		"nothing said": {[]holdfast.Message{{Role: holdfast.RoleReasoning, EncryptedValue: sealed(0)},
			{Role: holdfast.RoleAssistant}},
			`{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}`},
		"broken off": {[]holdfast.Message{{Role: holdfast.RoleAssistant, Text: "I"},
			{Role: holdfast.RoleReasoning, EncryptedValue: sealed(1)}},
			`{"role":"user","content":[{"type":"text","text":"one"}]},{"role":"assistant","content":[{"type":"text",` +
				`"text":"I"}]},{"role":"user","content":[{"type":"text","text":"two"}]}`},
	} {
		if got := asked(t, m, &holdfast.ModelRequest{Messages: append(append([]holdfast.Message{one}, c.said...),
			two)}); got != "["+c.want+"]" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestNoThinkingBeforeAForcedCall: the API refuses to think before a call that must be made.
func TestNoThinkingBeforeAForcedCall(t *testing.T) {
	t.Parallel()
	for _, thinking := range []map[string]any{{"type": "enabled", "budget_tokens": 2000}, {"type": "adaptive"}} {
		m := testModel(t, map[string]any{"thinking": thinking})
		for choice, thinks := range map[string]bool{"": true, "none": true, "required": false} {
			body, _, err := m.body(&holdfast.ModelRequest{
				ToolChoice: choice,
				Messages:   []holdfast.Message{{Role: holdfast.RoleUser, Text: "go"}},
				Tools:      []holdfast.ToolSpec{{Name: "f"}},
			})
			if got := strings.Contains(string(body.Bytes()), thinking["type"].(string)); err != nil || got != thinks {
				t.Errorf("%v, %q: %s, %v", thinking, choice, body.Bytes(), err)
			}
		}
	}
}
