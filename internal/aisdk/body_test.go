package aisdk

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// bodies are what clients post.
var bodies = map[string]string{
	"text": asking,
	"only the last": `{"id":"t","message":{"id":"u2","role":"user","metadata":{"a":1},` +
		`"parts":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}`,
	"files": `{"id":"t","messages":[{"id":"u1","role":"user","parts":[` +
		`{"type":"file","mediaType":"image/png","url":"data:image/png;base64,iVBORw0KGgo=","filename":"a.png"},` +
		`{"type":"file","mediaType":"text/plain","url":"data:text/plain,a%20b"},` +
		`{"type":"file","mediaType":"application/pdf","url":"https://a.example/b.pdf"},` +
		`{"type":"file","mediaType":"audio/wav","url":"","providerReference":{"openai":"file-1"}},` +
		`{"type":"data-mine","data":1}]}]}`,
	"imported": `{"id":"t","trigger":"submit-message","messages":[` +
		`{"id":"s","role":"system","parts":[{"type":"text","text":"be brief"}]},` +
		`{"id":"u1","role":"user","parts":[{"type":"text","text":"hi"}]},` +
		`{"id":"a1","role":"assistant","parts":[{"type":"step-start"},{"type":"reasoning","text":"hm"},` +
		`{"type":"text","text":"I "},{"type":"text","text":"see"},` +
		`{"type":"tool-look","toolCallId":"c1","state":"output-available","input":{"a":1},"output":{"b":2}},` +
		`{"type":"dynamic-tool","toolName":"find","toolCallId":"c2","state":"output-error","input":null,` +
		`"errorText":"gone"},{"type":"tool-look","toolCallId":"c3","state":"output-denied","input":{}},` +
		`{"type":"tool-look","toolCallId":"c4","state":"input-streaming","input":{}},` +
		`{"type":"tool-look","toolCallId":"c5","state":"input-available","input":{}},` +
		`{"type":"step-start"},{"type":"text","text":"Done."}]},` +
		`{"id":"u2","role":"user","parts":[{"type":"text","text":"on"}]}]}`,
	"answers":    answering,
	"regenerate": `{"id":"t","trigger":"regenerate-message","messageId":"answer-u1"}`,
	"more": `{"id":"t","messages":[],"runId":"r","state":{"n":1},"tools":[{"name":"pick","description":"",` +
		`"parameters":{}}],"context":[{"description":"d","value":"v"}],"forwardedProps":{"x":1},` +
		`"resume":[{"interruptId":"i","status":"resolved","payload":"blue"}],"mine":true}`,
}

// TestBodies: what clients post, in the words of AG-UI.
func TestBodies(t *testing.T) {
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			p := posted(t, body)
			rest, err := json.Marshal(map[string]any{
				"continues": p.Continues, "calls": p.Calls, "rewrites": p.Rewrites, "asks": p.Asks, "answer": p.Answer,
				"last": p.last, "chat": p.Input.Chat,
			})
			if err != nil {
				t.Fatal(err)
			}
			var lines strings.Builder
			for i := range p.Input.Messages {
				lines.Write(append(p.Input.Messages[i].AppendJSON(nil), '\n'))
			}
			p.Input.Messages = nil
			golden(t, "body-"+strings.ReplaceAll(name, " ", "-")+".txt",
				lines.String()+string(p.Input.AppendJSON(nil))+"\n"+string(rest)+"\n")
		})
	}
}

// TestBadBodies: what is refused, and where it is wrong.
func TestBadBodies(t *testing.T) {
	messages := func(list string) string { return `{"id":"t","messages":[` + list + `]}` }
	user := func(rest string) string { return messages(`{"id":"u","role":"user",` + rest + `}`) }
	const empty = `{"id":"u","role":"user","parts":[]}`
	for body, field := range map[string]string{
		``:                                     "",
		`[]`:                                   "",
		`{"id":"t"`:                            "",
		`{"messages":[]}`:                      "id",
		`{"id":""}`:                            "id",
		`{"id":7}`:                             "id",
		`{"id":"t","messages":{}}`:             "messages",
		`{"id":"t","Messages":[]}`:             "Messages",
		`{"id":"t","id":"t"}`:                  "id",
		`{"id":"t","trigger":"now"}`:           "trigger",
		messages(`{"role":"user","parts":[]}`): "messages[0].id",
		messages(`{"id":"u","role":"bot","parts":[]}`):                                    "messages[0].role",
		messages(empty + "," + empty):                                                     "messages[1].id",
		messages(`{"id":"u","role":"assistant","parts":[{"type":"tool-x","state":"a"}]}`): "messages[0].parts",
		user(`"parts":[{"type":"file","mediaType":"image/png","url":"data:image/png"}]`):  "messages[0].parts[0].url",
		user(`"parts":[{"type":"file","mediaType":"image/png","url":"somewhere"}]`):       "messages[0].parts[0].url",
		user(`"parts":[{"type":7}]`):                                                      "messages[0].parts[0].type",
		user(`"parts":[` + strings.Repeat(`{"type":"text","text":""},`, maxParts) +
			`{"type":"text"}]`): "messages[0].parts",
		`{"id":"t","resume":[{"interruptId":"i","status":"maybe"}]}`: "resume[0].status",
		`{"id":"t","tools":[{"description":"d"}]}`:                   "tools[0].name",
		`{"id":"t","runId":"` + strings.Repeat("x", 300) + `"}`:      "runId",
	} {
		_, err := Decode([]byte(body))
		var public *holdfast.Error
		if !errors.As(err, &public) || public.Code != codes.InvalidInput || public.Hint == "" {
			t.Errorf("%.80s: %v", body, err)
			continue
		}
		if got, _ := public.Details["field"].(string); got != field {
			t.Errorf("%.80s: the field is %q, want %q", body, got, field)
		}
	}
}

// FuzzDecode: whatever a client sends is refused, or is an input that AG-UI knows.
func FuzzDecode(f *testing.F) {
	for _, body := range bodies {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := Decode(body)
		if err != nil {
			return
		}
		if _, err := agui.DecodeInput(p.Input.AppendJSON(nil)); err != nil {
			t.Errorf("%s\n%s\n%v", body, p.Input.AppendJSON(nil), err)
		}
	})
}
