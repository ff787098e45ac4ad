package openai

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/testkit/modeltest"
)

func count(n int64) *int64 { return &n }

// TestConformance plugs a fake of OpenAI's chat completions into the suite.
func TestConformance(t *testing.T) {
	t.Parallel()
	modeltest.Run(t, conforming())
}

func conforming() modeltest.Provider {
	say := func(kind, code string) string {
		return sse(fmt.Sprintf(`{"error":{"type":%q,"code":%q,"message":"bad KEY"}}`, kind, code))
	}
	return modeltest.Provider{
		New: func(model, key string, client *http.Client) (modeltest.Model, error) {
			return New(Options{Model: model, Key: key, BaseURL: "https://fake/v1", HTTP: client})
		},
		Stream:     fake,
		Trailing:   2,
		Thinks:     true,
		SignsCalls: true,
		Usage: holdfast.Usage{
			InputTokens:     count(modeltest.Input),
			OutputTokens:    count(modeltest.Output),
			TotalTokens:     count(modeltest.Input + modeltest.Output),
			ReasoningTokens: count(modeltest.Reasoning),
			CachedInput:     count(modeltest.Cached),
			CacheWriteInput: count(modeltest.Written),
		},
		Unknown: []string{
			sse(`{"choices":[]}`),
			sse(`{"object":"news"}`),
			sse(`{"error":null,"choices":[]}`),
			"event: news\ndata: {}\n\n",
			": ping\n\n",
		},
		Undecodable: sse(`{"choices":[{"del`),
		Errors: map[failure.Kind][]string{
			failure.Overloaded: {say("server_error", ""), "error: GPU on fire\n\n"},
			failure.Rate:       {say("", "rate_limit_exceeded"), sse(`{"error":{"code":429,"message":"slow"}}`)},
			failure.Quota:      {say("insufficient_quota", "credit_balance_exhausted")},
			failure.Auth:       {say("", "invalid_api_key")},
			failure.TooLong:    {say("invalid_request_error", "context_length_exceeded")},
			failure.Refused:    {say("", "content_policy_violation")},
			failure.Invalid:    {say("invalid_request_error", "")},
		},
		Refusals: modeltest.Refusals(func(text string) string {
			return fmt.Sprintf(`{"error":{"message":%q,"type":"x"}}`, text)
		}),
	}
}

// fake writes an answer as OpenAI does.
func fake(a modeltest.Answer) []string {
	events := []string{delta(`{"role":"assistant","content":null}`)}
	for _, piece := range a.Reasoning {
		events = append(events, delta(fmt.Sprintf(`{"reasoning_content":%q}`, piece)))
	}
	for _, piece := range a.Text {
		events = append(events, delta(`{"content":`+modeltest.JSON(piece)+`}`))
	}
	for i, c := range a.Calls {
		extra := ""
		if c.Signature != "" {
			extra = fmt.Sprintf(`,"extra_content":{"google":{"thought_signature":%q}}`, c.Signature)
		}
		events = append(events, delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function",`+
			`"function":{"name":%q,"arguments":""}%s}]}`, i, c.ID, c.Name, extra)))
	}
	for _, piece := range modeltest.InTurn(a.Calls) {
		events = append(events, delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`,
			piece.Call, modeltest.JSON(piece.Arguments))))
	}
	usage := fmt.Sprintf(
		`{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,`+
			`"prompt_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d},`+
			`"completion_tokens_details":{"reasoning_tokens":%d}}}`,
		modeltest.Input,
		modeltest.Output,
		modeltest.Input+modeltest.Output,
		modeltest.Cached,
		modeltest.Written,
		modeltest.Reasoning,
	)
	return append(events, finish(strings.ToLower(string(a.Finish))), sse(usage), done)
}
