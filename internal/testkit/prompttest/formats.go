package prompttest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The four APIs: what in a request is the prompt and what its tail, and how an answer is
// written. The requests are taken apart as text, so that nothing here depends on how the
// clients write them but for the bytes.

// Format is the API of a provider.
type Format string

// The formats.
const (
	OpenAI    Format = "openai"
	Responses Format = "responses"
	Anthropic Format = "anthropic"
	Gemini    Format = "gemini"
)

// Formats returns all of them.
func Formats() []Format { return []Format{OpenAI, Responses, Anthropic, Gemini} }

// bare returns a request as far as the prompt goes: the marks for the cache are no part of
// it.
func (f Format) bare(body string) string {
	return strings.ReplaceAll(body, `,"cache_control":{"type":"ephemeral"}`, "")
}

// facts are what the frontend says of the moment begins with. Messages behind it may stand
// elsewhere in the next run.
var facts = []string{`\u003ccontext\u003e`, `\u003cclient_context\u003e`}

// said returns what the frontend says of the moment; empty if that is nothing.
func said(bare string) string {
	for _, begin := range facts {
		if _, text, found := strings.Cut(bare, begin); found {
			text, _, _ = strings.Cut(text, `"`)
			return begin + text
		}
	}
	return ""
}

// stable returns what the next run repeats of a prompt, without the ends of the lists that it
// is in: what stands before the facts of the frontend.
func (f Format) stable(bare string) string {
	context := said(bare)
	if context == "" {
		return strings.TrimRight(bare, "]}")
	}
	return f.upTo(bare, context)
}

// state is what the shared state begins with. It stands in the tail.
const state = `\u003cshared_state\u003e`

// withoutState returns a prompt up to the shared state, if that is shown.
func (f Format) withoutState(bare string) string {
	if !strings.Contains(bare, state) {
		return bare
	}
	return f.upTo(bare, state)
}

// upTo returns a prompt up to the part that begins with a text.
func (f Format) upTo(bare, text string) string {
	bare = bare[:strings.Index(bare, text)]
	for _, opening := range map[Format][]string{
		OpenAI: {`{"role":"user","content":"`},
		Responses: {`{"type":"message","role":"user","content":[{"type":"input_text","text":"`,
			`{"type":"message","role":"system","content":[{"type":"input_text","text":"`},
		Anthropic: {`{"type":"text","text":"`, `]},{"role":"user","content":[`},
		Gemini:    {`{"text":"`, `]},{"role":"user","parts":[`},
	}[f] {
		bare = strings.TrimSuffix(bare, opening)
	}
	return strings.TrimSuffix(bare, ",")
}

// answered is what each answer has once when it is sent back.
func (f Format) answered() string {
	return map[Format]string{
		OpenAI: `"role":"assistant"`, Responses: `"type":"reasoning"`, Anthropic: `"role":"assistant"`,
		Gemini: `"role":"model"`,
	}[f]
}

// text is a text as JSON.
func text(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}

// event is a server-sent event of a kind, or without one.
func event(kind, data string, args ...any) string {
	data = fmt.Sprintf(data, args...)
	if kind == "" {
		return "data: " + data + "\n\n"
	}
	return "event: " + kind + "\ndata: " + data + "\n\n"
}

// write returns the events of an answer, with reasoning that has to come back.
func (f Format) write(a Answer) []string {
	return map[Format]func(Answer) []string{OpenAI: sayOpenAI, Responses: sayResponses, Anthropic: sayAnthropic,
		Gemini: sayGemini}[f](a)
}

// halves are a text in two pieces, cut between two characters.
func halves(s string) []string {
	at := len(s) / 2
	for at < len(s) && s[at]&0xC0 == 0x80 {
		at++
	}
	return []string{s[:at], s[at:]}
}

func sayOpenAI(a Answer) []string {
	events := []string{
		event("", `{"choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"hm %d"}}]}`, a.Serial),
	}
	for _, half := range halves(a.Text) {
		events = append(events, event("", `{"choices":[{"index":0,"delta":{"content":%s}}]}`, text(half)))
	}
	for i, c := range a.Calls {
		extra := fmt.Sprintf(`,"extra_content":{"google": { "thought_signature":"c2ln%d=" } }`, a.Serial)
		events = append(events, event(
			"",
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":%q,"type":"function",`+
				`"function":{"name":%q,"arguments":""}%s}]}}]}`,
			i,
			c.ID,
			c.Name,
			extra,
		))
	}
	for i, c := range a.Calls {
		for _, half := range halves(c.Arguments) {
			events = append(events, event("",
				`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}}]}`, i,
				text(half)))
		}
	}
	finish := "stop"
	if len(a.Calls) > 0 {
		finish = "tool_calls"
	}
	return append(events, event("", `{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, finish),
		"data: [DONE]\n\n")
}

func sayResponses(a Answer) []string {
	reasoning := fmt.Sprintf(`{"id":"rs_%d","type":"reasoning","summary":[ {"type":"summary_text","text":"hm `+
		`<%[1]d>"} ],"encrypted_content":"ZW5j%[1]d+/="}`, a.Serial)
	events := []string{
		event("response.created", `{"type":"response.created","response":{"id":"resp_%d","status":"in_progress"}}`,
			a.Serial),
		event("response.reasoning_summary_text.delta",
			`{"type":"response.reasoning_summary_text.delta","item_id":"rs","output_index":0,`+
				`"summary_index":0,"delta":"hm"}`),
		event("response.output_item.done", `{"type":"response.output_item.done","output_index":0,"item":%s}`,
			reasoning),
		event("response.output_item.added",
			`{"type":"response.output_item.added","output_index":1,"item":{"id":"msg","type":"message",`+
				`"role":"assistant","content":[]}}`),
	}
	for _, half := range halves(a.Text) {
		events = append(events, event("response.output_text.delta",
			`{"type":"response.output_text.delta","item_id":"msg","output_index":1,"content_index":0,"delta":%s}`,
			text(half)))
	}
	events = append(events, event(
		"response.output_item.done",
		`{"type":"response.output_item.done","output_index":1,"item":{"id":"msg","type":"message",`+
			`"role":"assistant","content":[{"type":"output_text","text":%s}]}}`,
		text(a.Text),
	))
	for i, c := range a.Calls {
		events = append(events, sayResponsesCall(2+i, c)...)
	}
	return append(events, event("response.completed",
		`{"type":"response.completed","response":{"id":"resp_%d","status":"completed","error":null,"output":[]}}`,
		a.Serial))
}

// sayResponsesCall is a call as an item of the output.
func sayResponsesCall(index int, c Call) []string {
	item := func(arguments string) string {
		return fmt.Sprintf(`{"id":"fc_%s","type":"function_call","call_id":%[1]q,"name":%q,"arguments":%s}`, c.ID,
			c.Name, text(arguments))
	}
	events := []string{
		event("response.output_item.added", `{"type":"response.output_item.added","output_index":%d,"item":%s}`, index,
			item("")),
	}
	for _, half := range halves(c.Arguments) {
		events = append(events, event("response.function_call_arguments.delta",
			`{"type":"response.function_call_arguments.delta","output_index":%d,"delta":%s}`, index, text(half)))
	}
	return append(events, event("response.output_item.done",
		`{"type":"response.output_item.done","output_index":%d,"item":%s}`, index, item(c.Arguments)))
}

func sayAnthropic(a Answer) []string {
	block := func(index int, begin string, deltas ...string) (events []string) {
		events = append(events, event("content_block_start",
			`{"type":"content_block_start","index":%d,"content_block":%s}`, index, begin))
		for _, delta := range deltas {
			events = append(events, event("content_block_delta",
				`{"type":"content_block_delta","index":%d,"delta":%s}`, index, delta))
		}
		return append(events, event("content_block_stop", `{"type":"content_block_stop","index":%d}`, index))
	}
	events := []string{
		event(
			"message_start",
			`{"type":"message_start","message":{"id":"msg_%d","role":"assistant","model":"m1","content":[],`+
				`"usage":{"input_tokens":1,"output_tokens":1}}}`,
			a.Serial,
		),
	}
	events = append(events, block(0, `{"type":"thinking","thinking":"","signature":""}`,
		`{"type":"thinking_delta","thinking":"hm <so>"}`, fmt.Sprintf(`{"type":"signature_delta",`+
			`"signature":"c2ln%d+/="}`, a.Serial))...)
	pieces := halves(a.Text)
	events = append(events, block(1, `{"type":"text","text":""}`, `{"type":"text_delta","text":`+text(pieces[0])+`}`,
		`{"type":"text_delta","text":`+text(pieces[1])+`}`)...)
	stop := "end_turn"
	for i, c := range a.Calls {
		stop = "tool_use"
		var deltas []string
		for _, half := range halves(c.Arguments) {
			deltas = append(deltas, `{"type":"input_json_delta","partial_json":`+text(half)+`}`)
		}
		events = append(events, block(2+i,
			fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, c.ID, c.Name), deltas...)...)
	}
	return append(events, event("message_delta",
		`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":5}}`, stop),
		event("message_stop", `{"type":"message_stop"}`))
}

func sayGemini(a Answer) []string {
	chunk := func(finish string, parts ...string) string {
		return event("", `{"candidates":[{"content":{"role":"model","parts":[%s]}%s,"index":0}],"modelVersion":"m1"}`,
			strings.Join(parts, ","), finish)
	}
	events := []string{chunk("", `{"text":"hm","thought":true}`)}
	for i, half := range halves(a.Text) {
		signature := ""
		if i == 1 {
			signature = fmt.Sprintf(`,"thoughtSignature":"dGV4dA%d=="`, a.Serial)
		}
		events = append(events, chunk("", `{"text":`+text(half)+signature+`}`))
	}
	for i, c := range a.Calls {
		signature := ""
		if i == 0 {
			signature = fmt.Sprintf(`,"thoughtSignature":"c2ln%d+/="`, a.Serial)
		}
		events = append(events, chunk("",
			fmt.Sprintf(`{"functionCall":{"id":%q,"name":%q,"args":%s}%s}`, c.ID, c.Name, c.Arguments, signature)))
	}
	return append(events, chunk(`,"finishReason":"STOP"`))
}
