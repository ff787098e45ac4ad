package cuts

import (
	"fmt"
	"strings"

	"github.com/holdfast-agents/holdfast/internal/testkit/modeltest"
)

// ChatCompletions writes an answer of text or of calls as OpenAI's chat completions.
func ChatCompletions(a modeltest.Answer) []string {
	event := func(delta, finish string) string {
		return fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"delta\":{%s},\"finish_reason\":%s}]}\n\n", delta, finish)
	}
	var events []string
	for _, piece := range a.Text {
		events = append(events, event(`"content":`+modeltest.JSON(piece), "null"))
	}
	for i, c := range a.Calls {
		events = append(events, event(fmt.Sprintf(`"tool_calls":[{"index":%d,"id":%q,"type":"function",`+
			`"function":{"name":%q,"arguments":%s}}]`, i, c.ID, c.Name, modeltest.JSON(strings.Join(c.Arguments, ""))),
			"null"))
	}
	return append(events, event("", fmt.Sprintf("%q", a.Finish)), "data: [DONE]\n\n")
}

// Messages writes an answer of text or of calls as Anthropic's Messages.
func Messages(a modeltest.Answer) []string {
	event := func(kind, members string) string {
		return fmt.Sprintf("event: %s\ndata: {\"type\":%[1]q%s}\n\n", kind, members)
	}
	block := func(index int, start, delta string) []string {
		at := fmt.Sprintf(`,"index":%d`, index)
		return []string{
			event("content_block_start", at+`,"content_block":`+start),
			event("content_block_delta", at+`,"delta":`+delta),
			event("content_block_stop", at),
		}
	}
	events := []string{
		event("message_start", `,"message":{"id":"msg_1","type":"message","role":"assistant",`+
			`"model":"m2","content":[],`+
			`"usage":{"input_tokens":1,"output_tokens":1}}`),
	}
	if len(a.Text) > 0 {
		events = append(events, block(0, `{"type":"text","text":""}`,
			fmt.Sprintf(`{"type":"text_delta","text":%s}`, modeltest.JSON(strings.Join(a.Text, ""))))...)
	}
	for i, c := range a.Calls {
		events = append(events, block(i, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, c.ID, c.Name),
			fmt.Sprintf(`{"type":"input_json_delta","partial_json":%s}`,
				modeltest.JSON(strings.Join(c.Arguments, ""))))...)
	}
	reason := "end_turn"
	if len(a.Calls) > 0 {
		reason = "tool_use"
	}
	return append(events, event("message_delta",
		fmt.Sprintf(`,"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":2}`, reason)),
		event("message_stop", ""))
}
