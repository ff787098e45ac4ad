package gemini

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/testkit/modeltest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func count(n int64) *int64 { return &n }

// sse is an event as Gemini sends it.
func sse(members string) string { return "data: {" + members + "}\n\n" }

// tail is what every event has behind its candidate, besides more details of the usage.
func tail(usage string) string {
	return `,"usageMetadata": {` + usage + `},"modelVersion": "m1-001","responseId": "abc"`
}

// chunk is an event with parts.
func chunk(parts ...string) string {
	return sse(`"candidates": [{"content": {"parts": [` + strings.Join(parts, ",") +
		`],"role": "model"},"index": 0}]` + tail(`"promptTokenCount": 100`))
}

// finish is the last event.
func finish(reason string, parts ...string) string {
	return sse(fmt.Sprintf(`"candidates": [{"content": {"parts": [%s],"role": `+
		`"model"},"finishReason": %q,"index": 0}]`, strings.Join(parts, ","), reason) +
		tail(fmt.Sprintf(`"promptTokenCount": %d,"candidatesTokenCount": %d,"totalTokenCount": `+
			`%d,"cachedContentTokenCount": %d,"thoughtsTokenCount": %d`, modeltest.Input,
			modeltest.Output-modeltest.Reasoning, modeltest.Input+modeltest.Output, modeltest.Cached,
			modeltest.Reasoning)))
}

// text, thought and calls are parts.
func text(text string) string { return `{"text": ` + modeltest.JSON(text) + `}` }

func thought(text string) string { return `{"text": ` + modeltest.JSON(text) + `,"thought": true}` }

func signedText(text, signature string) string {
	return fmt.Sprintf(`{"text": %s,"thoughtSignature": %q}`, modeltest.JSON(text), signature)
}

func callPart(id, name, args, signature string) string {
	members := fmt.Sprintf(`"name": %q,"args": %s`, name, args)
	if id != "" {
		members = fmt.Sprintf(`"id": %q,`, id) + members
	}
	if signature != "" {
		return fmt.Sprintf(`{"functionCall": {%s},"thoughtSignature": %q}`, members, signature)
	}
	return fmt.Sprintf(`{"functionCall": {%s}}`, members)
}

// fake writes an answer as Gemini does: a call is one part, and parallel calls may be in
// one event.
func fake(nameless bool) func(modeltest.Answer) []string {
	return func(a modeltest.Answer) []string {
		var events, calls []string
		for _, piece := range a.Reasoning {
			events = append(events, chunk(thought(piece)))
		}
		if a.Signature != "" {
			events = append(events, chunk(fmt.Sprintf(`{"text": "","thought": true,"thoughtSignature": %q}`,
				a.Signature)))
		}
		for _, piece := range a.Text {
			events = append(events, chunk(text(piece)))
		}
		for _, c := range a.Calls {
			id, args := c.ID, strings.Join(c.Arguments, "")
			if nameless {
				id = ""
			}
			if args == "" {
				args = "{}"
			}
			calls = append(calls, callPart(id, c.Name, args, c.Signature))
		}
		if len(calls) > 0 {
			events = append(events, chunk(calls...))
		}
		return append(events, finish(map[bool]string{true: "MAX_TOKENS",
			false: "STOP"}[a.Finish == holdfast.FinishLength], text("")))
	}
}

func failed(code int, status, message, details string) string {
	return sse(fmt.Sprintf(`"error": {"code": %d,"message": %q,"status": %q,"details": [%s]}`, code, message, status,
		details))
}

// The suite puts its key where a fake says KEY, so that reason is escaped below.
//
// perDay says that a quota per day is used up.
const perDay = `{"@type": "type.googleapis.com/google.rpc.QuotaFailure","violations": [{"quotaId": ` +
	`"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}`

// TestConformance plugs a fake of Gemini into the suite, with and without ids of calls.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, nameless := range []bool{false, true} {
		t.Run(fmt.Sprintf("nameless %v", nameless), func(t *testing.T) {
			t.Parallel()
			modeltest.Run(t, conforming(nameless))
		})
	}
}

func conforming(nameless bool) modeltest.Provider {
	cut := []string{chunk(callPart("", "", "{}", "")), sse(`"candidates": [{"finishReason": ""}]`)}
	for _, reason := range []string{"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "OTHER"} {
		cut = append(cut, chunk(text("so"))+
			sse(fmt.Sprintf(`"candidates": [{"finishReason": %q,"finishMessage": %q}]`, reason, modeltest.Key)))
	}
	return modeltest.Provider{
		New: func(model, key string, client *http.Client) (modeltest.Model, error) {
			return New(Options{Model: model, Key: key, BaseURL: "https://fake", HTTP: client})
		},
		Stream:      fake(nameless),
		CountsEarly: true,
		Thinks:      true,
		Signs:       true,
		SignsCalls:  true,
		InOrder:     true,
		Nameless:    nameless,
		Usage: holdfast.Usage{
			InputTokens:     count(modeltest.Input),
			OutputTokens:    count(modeltest.Output),
			TotalTokens:     count(modeltest.Input + modeltest.Output),
			ReasoningTokens: count(modeltest.Reasoning),
			CachedInput:     count(modeltest.Cached),
		},
		Unknown: []string{
			sse(`"news": 1`),
			": hi\n\n",
			sse(`"error": null,"candidates": []`),
			chunk(),
			chunk(`{"news": {"x": 1}}`),
			chunk(text("")),
			sse(`"promptFeedback": {"safetyRatings": []}`),
			sse(`"usageMetadata": {"promptTokenCount": 1}`),
		},
		Undecodable: "data: {\"candidates\": [{\"cont\n\n",
		Errors: map[failure.Kind][]string{
			failure.Overloaded: {
				failed(503, "UNAVAILABLE", "overloaded KEY", ""),
				failed(500, "INTERNAL", "", ""),
				failed(504, "DEADLINE_EXCEEDED", "", ""),
			},
			failure.Rate:  {failed(429, "RESOURCE_EXHAUSTED", "slow", `{"@type": "x","retryDelay": "22s"}`)},
			failure.Quota: {failed(429, "RESOURCE_EXHAUSTED", "spent", perDay)},
			failure.Auth: {
				failed(403, "PERMISSION_DENIED", "", ""),
				failed(400, "INVALID_ARGUMENT", "API key not valid.",
					`{"@type": "type.googleapis.com/google.rpc.ErrorInfo","reason": "API_\u004bEY_INVALID"}`),
			},
			failure.TooLong: {
				failed(400, "INVALID_ARGUMENT",
					"The input token count (9) exceeds the maximum number of tokens allowed (8).", ""),
			},
			failure.Invalid: {failed(400, "INVALID_ARGUMENT", "what?", "")},
		},
		Refusing: []string{
			"Corrupted thought signature.",
			"Function call is missing a thought_signature in functionCall parts.",
		},
		Endings: map[failure.Kind][]string{
			failure.Refused: {
				sse(`"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}` + tail(`"promptTokenCount": 3`)),
			},
			failure.Cut: cut,
		},
		Refusals: slices.Concat(modeltest.Refusals(func(text string) string {
			return fmt.Sprintf(`[{"error":{"code":0,"message":%q,"status":""}}]`, text)
		}), []modeltest.Refusal{
			{
				Status: 429,
				Body: `[{"error":{"code":429,"message":"spent","status":"RESOURCE_EXHAUSTED","details":[` + perDay +
					`]}}]`,
				Kind: failure.Quota,
			},
			{
				Status: 400,
				Body: `{"error":{"code":400,"message":"API key not ` +
					`valid.","status":"INVALID_ARGUMENT","details":[{"@type":"x","reason":"API_\u004bEY_INVALID"}]}}`,
				Kind: failure.Auth,
			},
			{
				Status: 400,
				Body: `{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of ` +
					`tokens allowed (8).","status":"INVALID_ARGUMENT"}}`,
				Kind: failure.TooLong,
			},
		}),
	}
}
