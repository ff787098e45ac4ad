package anthropic

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/testkit/modeltest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func count(n int64) *int64 { return &n }

// sse is an event as Anthropic sends it.
func sse(kind, members string) string {
	return fmt.Sprintf("event: %s\ndata: {\"type\":%[1]q%s}\n\n", kind, members)
}

func begin(index int, block string) string {
	return sse("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, index, block))
}

func delta(index int, kind, member, text string) string {
	return sse("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":{"type":%q,%q:%s}`, index, kind, member,
		modeltest.JSON(text)))
}

func end(index int) string { return sse("content_block_stop", fmt.Sprintf(`,"index":%d`, index)) }

// opening and closing are what every answer begins and ends with.
func opening() string {
	return sse("message_start", fmt.Sprintf(
		`,"message":{"id":"msg_1","type":"message","role":"assistant","model":"m1-2026","content":[],`+
			`"stop_reason":null,"usage":{"input_tokens":%d,"cache_creation_input_tokens":%d,`+
			`"cache_read_input_tokens":%d,"output_tokens":1}}`,
		modeltest.Input-modeltest.Cached-modeltest.Written,
		modeltest.Written,
		modeltest.Cached,
	))
}

func closing(reason string) []string {
	return []string{
		sse("message_delta", fmt.Sprintf(
			`,"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d,`+
				`"output_tokens_details":{"thinking_tokens":%d}}`,
			reason,
			modeltest.Output,
			modeltest.Reasoning,
		)),
		sse("message_stop", ""),
	}
}

// fake writes an answer as Anthropic does; pieces of parallel calls come in turn, which
// its format allows.
func fake(a modeltest.Answer) []string {
	events, index := []string{opening(), "event: ping\ndata: {\"type\": \"ping\"}\n\n"}, 0
	if len(a.Reasoning) > 0 || a.Signature != "" {
		events = append(events, begin(0, `{"type":"thinking","thinking":"","signature":""}`))
		for _, piece := range a.Reasoning {
			events = append(events, delta(0, "thinking_delta", "thinking", piece))
		}
		events = append(events, delta(0, "signature_delta", "signature", a.Signature), end(0))
		index++
	}
	if len(a.Text) > 0 {
		events = append(events, begin(index, `{"type":"text","text":""}`))
		for _, piece := range a.Text {
			events = append(events, delta(index, "text_delta", "text", piece))
		}
		events = append(events, end(index))
		index++
	}
	for i, c := range a.Calls {
		events = append(events, begin(index+i,
			fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, c.ID, c.Name)),
			delta(index+i, "input_json_delta", "partial_json", ""))
	}
	for _, piece := range modeltest.InTurn(a.Calls) {
		events = append(events, delta(index+piece.Call, "input_json_delta", "partial_json", piece.Arguments))
	}
	for i := range a.Calls {
		events = append(events, end(index+i))
	}
	reason := map[holdfast.FinishReason]string{holdfast.FinishStop: "end_turn", holdfast.FinishToolCalls: "tool_use",
		holdfast.FinishLength: "max_tokens"}[a.Finish]
	return append(events, closing(reason)...)
}

func failed(kind, message string) string {
	return sse("error", fmt.Sprintf(`,"error":{"type":%q,"message":%q},"request_id":"req-2"`, kind, message))
}

// TestConformance plugs a fake of Anthropic's Messages into the suite.
func TestConformance(t *testing.T) {
	t.Parallel()
	modeltest.Run(t, conforming())
}

func conforming() modeltest.Provider {
	unnamed := "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
	untyped := "data: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
	refusal := opening() + begin(0, `{"type":"text","text":""}`) + delta(0, "text_delta", "text", "I ") +
		sse("message_delta", `,"delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","category":"bio",`+
			`"explanation":"no KEY"}},"usage":{"output_tokens":5}`) + sse("message_stop", "")
	return modeltest.Provider{
		New: func(model, key string, client *http.Client) (modeltest.Model, error) {
			return New(Options{Model: model, Key: key, BaseURL: "https://fake", HTTP: client})
		},
		Stream: fake, CountsEarly: true, Thinks: true, Signs: true,
		Usage: holdfast.Usage{
			InputTokens:     count(modeltest.Input),
			OutputTokens:    count(modeltest.Output),
			TotalTokens:     count(modeltest.Input + modeltest.Output),
			ReasoningTokens: count(modeltest.Reasoning),
			CachedInput:     count(modeltest.Cached),
			CacheWriteInput: count(modeltest.Written),
		},
		Unknown: []string{
			sse("news", ""),
			sse("ping", ""),
			": hi\n\n",
			begin(70, `{"type":"server_news","x":1}`),
			sse("content_block_delta", `,"index":70,"delta":{"type":"news_delta"}`),
			end(71),
			sse("news", `,"index":"one","message":7,"delta":"x","usage":[]`),
			sse("message_start", `,"error":null`),
			begin(72, `{"type":"server_news","text":{"x":1},"name":[]}`),
			sse("content_block_delta", `,"index":72,"delta":{"type":"news_delta","text":7}`),
			sse("content_block_delta", `,"index":1,"delta":{"type":"citations_delta",`+
				`"citation":{"type":"page_location","cited_text":"so"}}`),
		},
		Undecodable: "event: content_block_delta\ndata: {\"type\":\"content_bl\n\n",
		Errors: map[failure.Kind][]string{
			failure.Overloaded: {
				failed("overloaded_error", "Overloaded KEY"),
				failed("api_error", ""),
				failed("timeout_error", ""),
				unnamed,
				untyped,
				"data: {\"error\":\"busy\"}\n\n",
			},
			failure.Rate:  {failed("rate_limit_error", "slow")},
			failure.Quota: {failed("billing_error", "")},
			failure.Auth: {
				failed("authentication_error", ""),
				failed("permission_error", ""),
				failed("not_found_error", ""),
			},
			failure.TooLong: {
				failed("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
				failed("request_too_large", ""),
			},
			failure.Invalid: {failed("invalid_request_error", "what?")},
		},
		Refusing: []string{saysWrong, saysKept, saysFirst},
		Endings: map[failure.Kind][]string{
			failure.Refused: {refusal},
			failure.Cut: {
				opening() + begin(0, `{"type":"tool_use","id":"a","input":{}}`) + end(0),
				opening() + sse("message_stop", ""),
			},
		},
		Refusals: append(
			modeltest.Refusals(func(text string) string {
				return fmt.Sprintf(`{"type":"error","error":{"type":"x","message":%q}}`, text)
			}),
			modeltest.Refusal{
				Status: 529,
				Body:   `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`,
				Kind:   failure.Overloaded,
			},
			modeltest.Refusal{
				Status: 400,
				Body: `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is ` +
					`too low to access the Anthropic API."}}`,
				Kind: failure.Quota,
			},
			modeltest.Refusal{
				Status: 400,
				Body: `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: ` +
					`210000 tokens > 200000 maximum"}}`,
				Kind: failure.TooLong,
			},
		),
	}
}
