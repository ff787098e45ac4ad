package agui_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// times returns n copies of an element, separated by commas.
func times(n int, element string) string {
	return strings.TrimSuffix(strings.Repeat(element+",", n), ",")
}

func with(members string) string { return `{"threadId":"t","runId":"r",` + members + `}` }

func asks(message string) string {
	return with(`"messages":[` + message + `]`)
}

const plain = `{"id":"1","role":"user","content":"a"}`

// TestRefusedInput: what two readers could read differently, and what would grow into
// far more than was sent, is refused with the place where it begins.
func TestRefusedInput(t *testing.T) {
	deep := strings.Repeat("[", 257) + strings.Repeat("]", 257)
	assistant := `{"id":"1","role":"assistant","toolCalls":[%s]}`
	for _, c := range []struct{ body, field, message string }{
		{`{"threadId":"a","threadId":"b","runId":"r","messages":[]}`, "threadId", "is there twice"},
		{`{"THREADID":"a","runId":"r","messages":[]}`, "THREADID", "not spelled"},
		{with(`"Messages":[]`), "Messages", "not spelled"},
		{asks(`{"id":"1","Role":"user","role":"user","content":"a"}`), "messages[0].Role", "not spelled"},
		{asks(plain + `,{"id":"2","id":"3","role":"user","content":"a"}`), "messages[1].id", "is there twice"},
		{asks(`{"id":"1","role":"user","content":[{"type":"text","TEXT":"a"}]}`), "messages[0].content[0].TEXT",
			"not spelled"},
		{asks(fmt.Sprintf(assistant, `{"id":"c","function":{"name":"f","Arguments":"{}"}}`)),
			"messages[0].toolCalls[0].function.Arguments", "not spelled"},
		{with(`"messages":[],"state":{"a":{"b":1,"b":2}}`), "state.a.b", "is there twice"},
		{with(`"messages":[],"resume":[{"interruptId":"i","status":"resolved",` +
			`"payload":{"allow":false,"allow":true}}]`),
			"resume[0].payload.allow", "is there twice"},
		{with(`"messages":[],"resume":[{"interruptId":"i","status":"resolved","payload":{"approved":true}},` +
			`{"interruptId":"j","status":"cancelled"},{"interruptId":"i","status":"cancelled"}]`),
			"resume[2].interruptId", "answered twice"},
		{with(`"messages":[],"resume":[{"interruptId":"i","status":"resolved","payload":` + deep + `}]`), "",
			"nested more than 256"},
		{with(`"messages":[],"state":` + deep), "", "nested more than 256"},
		{asks(fmt.Sprintf(assistant, `{"id":"c","function":{"name":"f","arguments":"`+deep+`"}}`)),
			"messages[0].toolCalls[0].function.arguments", "nested more than 256"},
		{asks(times(10_001, `{}`)), "messages", "more than 10000 messages"},
		{asks(times(100_000, `""`)), "messages[0]", "wrong type"},
		{asks(plain + "," + times(100_000, `{"id":7}`)), "messages[1].id", "wrong type"},
		{with(`"messages":[],"tools":[` + times(1001, `{}`) + `]`), "tools", "more than 1000 tools"},
		{with(`"messages":[],"context":[` + times(1001, `{}`) + `]`), "context", "more than 1000 context items"},
		{with(`"messages":[],"resume":[` + times(1001, `{}`) + `]`), "resume", "more than 1000 resume entries"},
		{asks(fmt.Sprintf(assistant, times(1001, `{}`))), "messages[0].toolCalls", "more than 1000 tool calls"},
		{asks(times(21, fmt.Sprintf(assistant, times(1000, `{}`)))), "messages[20].toolCalls",
			"more than 20000 tool calls"},
		{asks(`{"id":"1","role":"user","content":[` + times(1001, `{}`) + `]}`), "messages[0].content",
			"more than 1000 parts"},
		{asks(times(21, `{"content":[`+times(1000, `{}`)+`]}`)), "messages[20].content", "more than 20000 parts"},
	} {
		_, err := agui.DecodeInput([]byte(c.body))
		var e *holdfast.Error
		if !errors.As(err, &e) || e.Code != codes.InvalidInput || !strings.Contains(e.Message, c.message) ||
			e.Hint == "" {
			t.Errorf("%.100s\n got %v, want %q", c.body, err, c.message)
			continue
		}
		if field, _ := e.Details["field"].(string); field != c.field {
			t.Errorf("%.100s\n is refused at %q, want %q", c.body, field, c.field)
		}
	}
}

// TestLargestInput: what is just within the limits is accepted.
func TestLargestInput(t *testing.T) {
	var messages []string
	for i := range 10_000 {
		messages = append(messages, fmt.Sprintf(`{"id":"%d","role":"user","content":"a"}`, i))
	}
	messages[0] = `{"id":"0","role":"user","content":[` + times(1000, `{"type":"text","text":"a"}`) + `]}`
	in, err := agui.DecodeInput([]byte(with(`"messages":[` + strings.Join(messages, ",") + `],"tools":[` +
		times(1000, `{"name":"f"}`) + `]`)))
	if err != nil || len(in.Messages) != 10_000 || len(in.Tools) != 1000 {
		t.Error(err)
	}
}

// TestDecodingMemory: decoding allocates at most six times the body, whether the body is
// refused or accepted. It allocates more in total than it ever holds.
func TestDecodingMemory(t *testing.T) {
	const size = 4 << 20
	fill := func(element string) string { return times(size/(len(element)+1), element) }
	object := func(n int) string { // n members with different, short names
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"%x":1,`, i)
		}
		return "{" + strings.TrimSuffix(b.String(), ",") + "}"
	}
	for name, body := range map[string]string{
		"empty objects":  asks(fill(`{}`)),
		"empty strings":  asks(fill(`""`)),
		"empty parts":    asks(times(1000, `{"id":"1","role":"user","content":[`+times(999, `{}`)+`]}`)),
		"empty calls":    asks(times(20, `{"toolCalls":[`+times(999, `{}`)+`]}`)),
		"empty tools":    with(`"messages":[],"tools":[` + fill(`{}`) + `]`),
		"unknown lists":  with(`"messages":[],"other":[` + fill(`[]`) + `]`),
		"many names":     with(`"messages":[],"state":` + object(size/9)),
		"escaped names":  with(`"messages":[],"state":{` + fill(`"\u0041":{"\u0042":{"\u0043":1}}`) + `}`),
		"deep":           with(`"messages":[],"state":` + strings.Repeat("[", size)),
		"long text":      asks(`{"id":"1","role":"user","content":"` + strings.Repeat("a", size) + `"}`),
		"many messages":  asks(unique(9_999, strings.Repeat("a", size/10_000))),
		"small messages": asks(unique(9_999, "")),
	} {
		var before, after runtime.MemStats
		data := []byte(body)
		runtime.ReadMemStats(&before)
		_, err := agui.DecodeInput(data)
		runtime.ReadMemStats(&after)
		took := after.TotalAlloc - before.TotalAlloc
		t.Logf("%-15s %5.1f MB: allocated %5.1f MB, %v", name, float64(len(data))/(1<<20), float64(took)/(1<<20), err)
		if limit := uint64(6 * max(len(data), 1<<20)); took > limit {
			t.Errorf("%s: %d bytes allocated for a body of %d", name, took, len(data))
		}
	}
}

// unique returns n user messages with ids of their own.
func unique(n int, content string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"%d","role":"user","content":%q}`, i, content)
	}
	return b.String()
}
