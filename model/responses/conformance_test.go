package responses

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/testkit/modeltest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func count(n int64) *int64 { return &n }

// sse is an event as OpenAI sends it.
func sse(kind, members string) string {
	return fmt.Sprintf("event: %s\ndata: {\"type\":%[1]q,\"sequence_number\":7%s}\n\n", kind, members)
}

func added(index int, item string) string {
	return sse("response.output_item.added", fmt.Sprintf(`,"output_index":%d,"item":%s`, index, item))
}

func done(index int, item string) string {
	return sse("response.output_item.done", fmt.Sprintf(`,"output_index":%d,"item":%s`, index, item))
}

func delta(index int, kind, text string) string {
	return sse("response."+kind+".delta",
		fmt.Sprintf(`,"item_id":"it_%d","output_index":%[1]d,"content_index":0,"delta":%s,"obfuscation":"xY3"`, index,
			modeltest.JSON(text)))
}

func summary(index, part int, text string) string {
	return sse("response.reasoning_summary_text.delta",
		fmt.Sprintf(`,"item_id":"it_%d","output_index":%[1]d,"summary_index":%d,"delta":%s`, index, part,
			modeltest.JSON(text)))
}

func callItem(id, name, arguments string) string {
	return fmt.Sprintf(`{"id":"fc_%s","type":"function_call","status":"completed","call_id":%[1]q,`+
		`"name":%q,"arguments":%s}`, id, name, modeltest.JSON(arguments))
}

// terminal is the last event, with the whole response; details are further members of it.
func terminal(status, details string) string {
	return sse("response."+status, fmt.Sprintf(
		`,"response":{"id":"resp_1","object":"response","status":%q,"model":"m1-2026","error":null,%s"output":[],`+
			`"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d},`+
			`"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}}`,
		status,
		details,
		modeltest.Input,
		modeltest.Cached,
		modeltest.Written,
		modeltest.Output,
		modeltest.Reasoning,
		modeltest.Input+modeltest.Output,
	))
}

const opening = `,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"m1-2026",` +
	`"error":null,"output":[],"usage":null}`

// fake writes an answer as OpenAI does; pieces of parallel calls come in turn, which its
// format allows.
func fake(a modeltest.Answer) []string {
	events, index := []string{sse("response.created", opening), sse("response.in_progress", opening)}, 0
	if len(a.Reasoning) > 0 || a.Signature != "" {
		events = append(events, added(0,
			`{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"incomplete"}`))
		for _, piece := range a.Reasoning {
			events = append(events, summary(0, 0, piece))
		}
		events = append(events, done(0,
			fmt.Sprintf(`{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"a `+
				`summary"}],"encrypted_content":%q}`, a.Signature)))
		index++
	}
	if len(a.Text) > 0 {
		events = append(events, added(index,
			`{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}`),
			sse("response.content_part.added", fmt.Sprintf(`,"output_index":%d,"content_index":0,`+
				`"part":{"type":"output_text","text":""}`, index)))
		for _, piece := range a.Text {
			events = append(events, delta(index, "output_text", piece))
		}
		text := modeltest.JSON(strings.Join(a.Text, ""))
		events = append(events, sse("response.output_text.done",
			fmt.Sprintf(`,"output_index":%d,"content_index":0,"text":%s`, index, text)), done(index, fmt.Sprintf(
			`{"id":"msg_1","type":"message","status":"completed","role":"assistant",`+
				`"content":[{"type":"output_text","text":%s}]}`,
			text,
		)))
		index++
	}
	for i, c := range a.Calls {
		events = append(events, added(index+i, callItem(c.ID, c.Name, "")))
	}
	for _, piece := range modeltest.InTurn(a.Calls) {
		events = append(events, delta(index+piece.Call, "function_call_arguments", piece.Arguments))
	}
	for i, c := range a.Calls {
		arguments := strings.Join(c.Arguments, "")
		events = append(events, sse("response.function_call_arguments.done",
			fmt.Sprintf(`,"output_index":%d,"arguments":%s`, index+i, modeltest.JSON(arguments))),
			done(index+i, callItem(c.ID, c.Name, arguments)))
	}
	if a.Finish == holdfast.FinishLength {
		return append(events, terminal("incomplete", `"incomplete_details":{"reason":"max_output_tokens"},`))
	}
	return append(events, terminal("completed", `"incomplete_details":null,`))
}

// failed is an error event as OpenAI sends it, nested one of another server.
func failedFlat(code, message string) string {
	return sse("error", fmt.Sprintf(`,"code":%q,"message":%q,"param":null`, code, message))
}

func failedNested(code, message string) string {
	return fmt.Sprintf("data: {\"type\":\"error\",\"error\":{\"type\":\"x\",\"code\":%q,"+
		"\"message\":%q,\"param\":null}}\n\n", code, message)
}

// failedAfter is the terminal event of a response that failed.
func failedAfter(code, message string) string {
	return sse("response.failed", fmt.Sprintf(
		`,"response":{"id":"resp_1","object":"response","status":"failed","error":{"code":%q,"message":%q},`+
			`"output":[],"usage":null}`,
		code,
		message,
	))
}

// TestConformance plugs a fake of OpenAI's Responses into the suite.
func TestConformance(t *testing.T) {
	t.Parallel()
	modeltest.Run(t, conforming())
}

func conforming() modeltest.Provider {
	return modeltest.Provider{
		New: func(model, key string, client *http.Client) (modeltest.Model, error) {
			return New(Options{Model: model, Key: key, BaseURL: "https://fake", HTTP: client})
		},
		Stream: fake, Thinks: true, Signs: true,
		Usage: holdfast.Usage{
			InputTokens:     count(modeltest.Input),
			OutputTokens:    count(modeltest.Output),
			TotalTokens:     count(modeltest.Input + modeltest.Output),
			ReasoningTokens: count(modeltest.Reasoning),
			CachedInput:     count(modeltest.Cached),
			CacheWriteInput: count(modeltest.Written),
		},
		Unknown: []string{
			sse("response.news", `,"delta":{"x":1},"output_index":"one"`),
			sse("keepalive", ""),
			": hi\n\n",
			sse("response.queued", `,"error":null`),
			added(70, `{"id":"ws_1","type":"web_search_call","status":"in_progress"}`),
			done(71, `{"type":"server_news","arguments":"{}"}`),
			sse("response.audio.delta", `,"delta":"AAAA"`),
		},
		Undecodable: "event: response.output_text.delta\ndata: {\"type\":\"response.out\n\n",
		Errors: map[failure.Kind][]string{
			failure.Overloaded: {
				failedFlat("server_error", "broken KEY"),
				failedNested("server_is_overloaded", ""),
				failedAfter("server_error", ""),
				failedFlat("", ""),
				sse("response.failed", `,"response":{"status":"failed","error":null}`),
				"data: {\"error\":{\"message\":\"proxy KEY\"}}\n\n",
				terminal("completed", `"error":{"code":"server_error","message":"late"},`),
			},
			failure.Rate: {
				failedFlat("rate_limit_exceeded", "Please try again in 7m12s."),
				failedNested("slow_down", ""),
				failedAfter("rate_limit_exceeded", ""),
			},
			failure.Quota: {failedFlat("insufficient_quota", ""), failedAfter("insufficient_quota", "")},
			failure.Auth:  {failedNested("invalid_api_key", ""), failedNested("model_not_found", "")},
			failure.TooLong: {
				failedAfter("context_length_exceeded", ""),
				failedFlat("x", "Your input exceeds the context window of this model."),
			},
			failure.Refused: {
				failedAfter("invalid_prompt", "private prompt"),
				failedAfter("image_content_policy_violation", ""),
				failedAfter("content_filter", ""),
			},
			failure.Invalid: {
				failedAfter("empty_image_file", ""),
				failedFlat("invalid_request_error", "what?"),
				failedNested("unsupported_image_media_type", ""),
			},
			failure.Cut: {
				terminal("cancelled", ""),
				terminal("completed", `"status":"queued",`),
				"data: [DONE]\n\n",
			},
		},
		Refusing: []string{
			"The encrypted content gAAA...DQ== could not be verified.",
			"Item 'rs_1' of type 'reasoning' was provided without its required following item.",
		},
		Endings: map[failure.Kind][]string{
			failure.Cut: {
				sse("response.created", opening) + added(0, callItem("a", "", "")) + done(0, callItem("a", "", "{}")) +
					terminal("completed", ""),
				delta(0, "function_call_arguments", "{}") + terminal("completed", ""),
				added(0, callItem("a", "f", "")) + delta(0, "function_call_arguments", `{"x":1}`) +
					done(0, callItem("a", "f", `{"x":2}`)) + terminal("completed", ""),
				sse("response.completed", ""),
				"data: {\"type\":\"response.output_item.done\",\"item\":[]}\n\n",
			},
		},
		Refusals: append(
			modeltest.Refusals(func(text string) string {
				return fmt.Sprintf(`{"error":{"type":"x","code":null,"param":null,"message":%q}}`, text)
			}),
			modeltest.Refusal{
				Status: 429,
				Body: `{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"You ` +
					`exceeded your current quota"}}`,
				Kind: failure.Quota,
			},
			modeltest.Refusal{
				Status: 400,
				Body: `{"error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"Your ` +
					`input exceeds the context window of this model."}}`,
				Kind: failure.TooLong,
			},
		),
	}
}
