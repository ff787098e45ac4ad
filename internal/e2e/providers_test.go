package e2e

// The official client against a server whose agents ask each provider, played here with
// answers in the recorded form of each.

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
)

// provider is a fake of a provider: an answer with reasoning and two calls, and one with a
// text. The first comes once for each conversation, before there are results.
type provider struct {
	// path is where it is asked, and results what a request with results has in it.
	path, results string
	calls, text   string
	// back is what the provider needs back, unchanged.
	back []string
}

// event writes an event whose name is its type.
func event(kind, members string) string {
	return fmt.Sprintf("event: %s\ndata: {\"type\":%[1]q%s}\n\n", kind, members)
}

var anthropicFake = provider{
	path:    "/anthropic/v1/messages",
	results: `"tool_result"`,
	back: []string{
		`{"type":"thinking","thinking":"hm so","signature":"sig-a+/="}`,
		`{"type":"redacted_thinking","data":"sig-b+/="}`,
	},
	calls: event("message_start", `,"message":{"model":"m1","usage":{"input_tokens":30,`+
		`"cache_creation_input_tokens":10,`+
		`"cache_read_input_tokens":60,"output_tokens":1}}`) +
		event("content_block_start", `,"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}`) +
		event("content_block_delta", `,"index":0,"delta":{"type":"thinking_delta","thinking":"hm "}`) +
		event("content_block_delta", `,"index":0,"delta":{"type":"thinking_delta","thinking":"so"}`) +
		event("content_block_delta", `,"index":0,"delta":{"type":"signature_delta","signature":"sig-a+/="}`) +
		event("content_block_stop", `,"index":0`) +
		event("content_block_start", `,"index":1,"content_block":{"type":"redacted_thinking","data":"sig-b+/="}`) +
		event("content_block_stop", `,"index":1`) +
		event("content_block_start", `,"index":2,"content_block":{"type":"text","text":""}`) +
		event("content_block_delta", `,"index":2,"delta":{"type":"text_delta","text":"I count."}`) +
		event("content_block_stop", `,"index":2`) +
		event("content_block_start", `,"index":3,"content_block":{"type":"tool_use","id":"toolu_1",`+
			`"name":"calculate","input":{}}`) +
		event("content_block_start", `,"index":4,"content_block":{"type":"tool_use","id":"toolu_2",`+
			`"name":"calculate","input":{}}`) +
		event("content_block_delta", `,"index":3,"delta":{"type":"input_json_delta",`+
			`"partial_json":"{\"expression\":"}`) +
		event("content_block_delta", `,"index":4,"delta":{"type":"input_json_delta",`+
			`"partial_json":"{\"expression\":\"2+2\"}"}`) +
		event("content_block_delta", `,"index":3,"delta":{"type":"input_json_delta","partial_json":"\"1+1\"}"}`) +
		event("content_block_stop", `,"index":3`) + event("content_block_stop", `,"index":4`) +
		event("message_delta", `,"delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":50,`+
			`"output_tokens_details":{"thinking_tokens":20}}`) + event("message_stop", ""),
	text: event("message_start", `,"message":{"model":"m1","usage":{"input_tokens":30,`+
		`"cache_creation_input_tokens":10,`+
		`"cache_read_input_tokens":60,"output_tokens":1}}`) +
		event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`) +
		event("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"It is 2 and 4."}`) +
		event("content_block_stop", `,"index":0`) +
		event("message_delta", `,"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":50,`+
			`"output_tokens_details":{"thinking_tokens":20}}`) + event("message_stop", ""),
}

const responsesReasoning = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm ` +
	`so"}],"encrypted_content":"sig-c+/="}`

func responsesCall(id, arguments string) string {
	return fmt.Sprintf(`{"id":"fc_%s","type":"function_call","call_id":%[1]q,"name":"calculate","arguments":%q}`, id,
		arguments)
}

const responsesEnd = `,"response":{"object":"response","status":"completed","model":"m1","error":null,` +
	`"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":60,"cache_write_tokens":10},` +
	`"output_tokens":50,"output_tokens_details":{"reasoning_tokens":20},"total_tokens":150}}`

var responsesFake = provider{
	path:    "/openai/responses",
	results: `"function_call_output"`,
	back:    []string{responsesReasoning},
	calls: event("response.created", `,"response":{"status":"in_progress","error":null}`) +
		event("response.output_item.added",
			`,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"half"}`) +
		event("response.reasoning_summary_text.delta", `,"output_index":0,"summary_index":0,"delta":"hm so"`) +
		event("response.output_item.done", `,"output_index":0,"item":`+responsesReasoning) +
		event("response.output_item.added",
			`,"output_index":1,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}`) +
		event("response.output_text.delta", `,"output_index":1,"content_index":0,"delta":"I count."`) +
		event("response.output_item.done",
			`,"output_index":1,"item":{"id":"msg_1","type":"message","role":"assistant",`+
				`"content":[{"type":"output_text","text":"I count."}]}`) +
		event("response.output_item.added", `,"output_index":2,"item":`+responsesCall("call_1", "")) +
		event("response.output_item.added", `,"output_index":3,"item":`+responsesCall("call_2", "")) +
		event("response.function_call_arguments.delta", `,"output_index":2,"delta":"{\"expression\":"`) +
		event("response.function_call_arguments.delta", `,"output_index":3,"delta":"{\"expression\":\"2+2\"}"`) +
		event("response.function_call_arguments.delta", `,"output_index":2,"delta":"\"1+1\"}"`) +
		event("response.output_item.done",
			`,"output_index":2,"item":`+responsesCall("call_1", `{"expression":"1+1"}`)) +
		event("response.output_item.done",
			`,"output_index":3,"item":`+responsesCall("call_2", `{"expression":"2+2"}`)) +
		event("response.completed", responsesEnd),
	text: event("response.output_text.delta", `,"output_index":0,"content_index":0,"delta":"It is 2 and 4."`) +
		event("response.completed", responsesEnd),
}

// geminiEnd has no count of what was written to a cache: the API does not know it.
const geminiEnd = `"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":30,"thoughtsTokenCount":20,` +
	`"totalTokenCount":150,"cachedContentTokenCount":60},"modelVersion":"m1"`

var geminiFake = provider{
	path:    "/gemini/v1beta/models/m1:streamGenerateContent",
	results: `"functionResponse"`,
	back:    []string{`"thoughtSignature":"sig-d+/="`, `"thoughtSignature":"sig-e+/="`},
	calls: "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hm so\",\"thought\":true}]}}]}\n\n" +
		"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"I " +
		"count.\",\"thoughtSignature\":\"sig-d+/=\"}]}}]}\n\n" +
		"data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"calculate\"," +
		"\"args\":{\"expression\":\"1+1\"}},\"thoughtSignature\":\"sig-e+/=\"}," +
		"{\"functionCall\":{\"name\":\"calculate\",\"args\":{\"expression\":\"2+2\"}}}]}}]}\n\n" +
		"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\"}]},\"finishReason\":\"STOP\"}]," + geminiEnd +
		"}\n\n",
	text: "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"It is 2 and " +
		"4.\"}]},\"finishReason\":\"STOP\"}]," +
		geminiEnd +
		"}\n\n",
}

// chatEnd has only the counts that every server with this API has.
const chatEnd = "data: {\"model\":\"m1\",\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":50," +
	"\"total_tokens\":150}}\n\ndata: [DONE]\n\n"

func chatDelta(delta string) string { return "data: {\"choices\":[{\"delta\":" + delta + "}]}\n\n" }

var chatFake = provider{
	path:    "/openai/chat/completions",
	results: `"role":"tool"`,
	back:    []string{`"extra_content":{"google":{"thought_signature":"sig-f+/="}}`},
	calls: chatDelta(`{"role":"assistant","reasoning_content":"hm so"}`) + chatDelta(`{"content":"I count."}`) +
		chatDelta(`{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"calculate","arguments":""},`+
			`"extra_content":{"google":{"thought_signature":"sig-f+/="}}}]}`) +
		chatDelta(`{"tool_calls":[{"index":1,"id":"call_2","function":{"name":"calculate",`+
			`"arguments":"{\"expression\":"}}]}`) +
		chatDelta(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"expression\":\"1+1\"}"}}]}`) +
		chatDelta(`{"tool_calls":[{"index":1,"function":{"arguments":"\"2+2\"}"}}]}`) +
		"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n" + chatEnd,
	text: chatDelta(`{"content":"It is 2 and 4."}`) +
		"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n" + chatEnd,
}

// providers plays them all.
type providers struct {
	mu    sync.Mutex
	asked map[string]int
	wrong []string
}

// ServeHTTP answers a request, and checks what it brings back.
func (p *providers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	for _, fake := range []provider{anthropicFake, responsesFake, geminiFake, chatFake} {
		if err != nil || r.URL.Path != fake.path {
			continue
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked[fake.path]++
		if !strings.Contains(string(body), fake.results) {
			fmt.Fprint(w, fake.calls)
			return
		}
		for _, back := range fake.back {
			if strings.Count(string(body), back) != 1 {
				p.wrong = append(p.wrong, fmt.Sprintf("%s: not once %s:\n%s", fake.path, back, body))
			}
		}
		fmt.Fprint(w, fake.text)
		return
	}
	http.Error(w, fmt.Sprint("unexpected: ", r.URL.Path, " ", err), http.StatusNotFound)
}

// TestProvidersAtTheOfficialClient: reasoning, what providers need back, parallel calls,
// text and usage reach the official client from each provider as they are stored; and the
// next requests bring back to each what it gave, unchanged.
func TestProvidersAtTheOfficialClient(t *testing.T) {
	t.Parallel()
	fakes := &providers{asked: map[string]int{}}
	s := httptest.NewServer(fakes)
	t.Cleanup(s.Close)
	file := "agents:\n"
	for model, path := range map[string]string{"anthropic": "/anthropic", "responses": "/openai", "gemini": "/gemini",
		"openai": "/openai"} {
		file += fmt.Sprintf("  - {name: %s, model: %[1]s/m1, baseURL: %q, tools: [calculate]}\n", model, s.URL+path)
	}
	config := filepath.Join(t.TempDir(), "holdfast.yaml")
	if err := os.WriteFile(config, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("clients", func(t *testing.T) {
		eachClient(t, func(t *testing.T, version string) {
			p := start(t, redistest.FreeAddr(t), newFile(t), "--config="+config)
			if out, err := oracle(t, "providers.mjs", version, p.url).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s\nserver:\n%s", err, out, p.out)
			}
			metrics := bodyOf(t, p.url+"/metrics")
			for _, want := range []string{
				`{agent="anthropic",kind="input"} 300`, `{agent="anthropic",kind="cache_write"} 30`,
				`{agent="responses",kind="cached"} 180`,
				`{agent="gemini",kind="output"} 150`, `{agent="gemini",kind="cache_write"} 0`,
				`{agent="openai",kind="reasoning"} 0`,
			} {
				if !strings.Contains(metrics, "holdfast_tokens_total"+want) {
					t.Errorf("the metrics do not have %s", want)
				}
			}
		})
	})
	for path, n := range fakes.asked {
		if n%3 != 0 { // three for each client
			t.Errorf("%s was asked %d times", path, n)
		}
	}
	for _, wrong := range fakes.wrong {
		t.Error(wrong)
	}
}

// bodyOf gets a page.
func bodyOf(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
