package prompttest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// provider is the name that secrets are stored under.
func (f Format) provider() string {
	if f == Responses {
		return string(OpenAI)
	}
	return string(f)
}

// secret is an encrypted value as the format's model stores it, standing in the answer
// after so many bytes of its text.
func (f Format) secret(n, text int, call bool) string {
	block := map[Format]string{
		OpenAI: `{"google":{"thought_signature":"s%d"}}`, Responses: `{"type":"reasoning","id":"rs_%d","summary":[],` +
			`"encrypted_content":"<x>"}`,
		Anthropic: `{"type":"thinking","thinking":"<hm>","signature":"s%d"}`,
		Gemini:    `{"signature":"s%d","thought":true}`,
	}[f]
	if call && f == Gemini {
		block = `{"signature":"s%d"}`
	}
	return fmt.Sprintf(`{"provider":%q,"model":"m1","text":%d,"blocks":[%s]}`, f.provider(), text,
		fmt.Sprintf(block, n))
}

// turns draws a conversation: each element is what one step adds to it before the model is
// asked again.
func turns(t *rapid.T, f Format) [][]holdfast.Message {
	serial := 0
	id := func(prefix string) string { serial++; return fmt.Sprintf("%s%d", prefix, serial) }
	words := rapid.SampledFrom([]string{"", " ", "yes", "<b>é</b> & \u2028", "🙂\n\"x\"", strings.Repeat("long ", 50)})
	user := func() holdfast.Message {
		m := holdfast.Message{
			ID:   id("u"),
			Role: holdfast.RoleUser,
			Text: "say " + words.Draw(t, "text"),
			Name: rapid.SampledFrom([]string{"", "ann"}).Draw(t, "name"),
		}
		if rapid.Bool().Draw(t, "in parts") {
			m.Parts = []holdfast.Part{
				{
					Type: holdfast.PartText,
					Text: m.Text,
				},
				{
					Type:   holdfast.PartImage,
					Source: &holdfast.Source{Type: holdfast.SourceURL, Value: "https://x/y?a=1&b=<2>.png"},
				},
				{
					Type:   holdfast.PartDocument,
					Source: &holdfast.Source{Type: holdfast.SourceData, MIMEType: "application/pdf", Value: "CCCC"},
				},
				{
					Type:   holdfast.PartVideo,
					Source: &holdfast.Source{Type: holdfast.SourceURL, Value: "https://x/y.mp4"},
				},
			}
			m.Text = ""
		}
		return m
	}
	first := user()
	first.Parts, first.Text = nil, "(thread t) "+first.Text
	all := [][]holdfast.Message{{first}}
	for range rapid.IntRange(1, 6).Draw(t, "steps") {
		var step []holdfast.Message
		answer := holdfast.Message{ID: id("a"), Role: holdfast.RoleAssistant, Text: words.Draw(t, "answer")}
		if rapid.Bool().Draw(t, "thinks") {
			step = append(step, holdfast.Message{
				ID:             id("r"),
				Role:           holdfast.RoleReasoning,
				Text:           "hm",
				EncryptedValue: f.secret(serial, 0, false),
			})
		}
		for n := range rapid.IntRange(0, 3).Draw(t, "calls") {
			c := holdfast.ToolCall{
				ID:   id("call_"),
				Name: "look",
				Arguments: json.RawMessage(rapid.SampledFrom([]string{"", "{}", `{ "a": 1.0, "b" : "<é>" }`,
					`{"cut":`}).Draw(t, "arguments")),
			}
			if n == 0 && f != Anthropic && f != Responses {
				c.EncryptedValue = f.secret(serial, 0, true)
			}
			answer.Calls = append(answer.Calls, c)
		}
		if rapid.IntRange(0, 3).Draw(t, "makes an image") == 0 {
			answer.Parts = []holdfast.Part{
				{Type: holdfast.PartText, Text: answer.Text},
				{
					Type:           holdfast.PartImage,
					EncryptedValue: rapid.SampledFrom([]string{"", f.secret(serial, 0, true)}).Draw(t, "by"),
					Source:         &holdfast.Source{Type: holdfast.SourceData, MIMEType: "image/png", Value: "DDDD"},
				},
			}
		}
		step = append(step, answer)
		if len(answer.Text) > 3 && rapid.Bool().Draw(t, "thinks again") {
			again := holdfast.Message{
				ID:             id("r"),
				Role:           holdfast.RoleReasoning,
				Text:           "hm",
				EncryptedValue: f.secret(serial, 3, false),
			}
			if len(answer.Calls) == 0 {
				step = append(step, again) // results follow calls
			} else {
				step = slices.Insert(step, len(step)-1, again)
			}
		}
		for _, c := range rapid.Permutation(answer.Calls).Draw(t, "results") {
			r := holdfast.Message{ID: id("t"), Role: holdfast.RoleTool, CallID: c.ID, Text: words.Draw(t, "result")}
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				r.Error = "it <failed>"
			case 1:
				r.Parts, r.Text = []holdfast.Part{
					{Type: holdfast.PartText, Text: "seen"},
					{
						Type:   holdfast.PartImage,
						Source: &holdfast.Source{Type: holdfast.SourceData, MIMEType: "image/png", Value: "AAAA"},
					},
				}, ""
			}
			step = append(step, r)
		}
		// A model is never asked right after an answer without calls.
		if len(answer.Calls) == 0 || rapid.IntRange(0, 3).Draw(t, "speaks") == 0 {
			step = append(step, user())
		}
		if rapid.IntRange(0, 5).Draw(t, "is told") == 0 {
			step = append(step, holdfast.Message{ID: id("s"), Role: holdfast.RoleSystem, Text: "The <user> is away."})
		}
		all = append(all, step)
	}
	return all
}

// reread is a message as it comes back from the store.
func reread(t *rapid.T, m holdfast.Message) holdfast.Message {
	wire := agui.FromDomain(m)
	read, err := agui.DecodeMessage(wire.AppendJSON(nil))
	if err != nil {
		t.Fatal(err)
	}
	d, err := read.Domain()
	if err != nil {
		t.Fatal(err)
	}
	if m.Role == holdfast.RoleAssistant {
		d.Parts = m.Parts // the images are messages of their own
	}
	return d
}

// TestOnlyAppends: whatever is said and called, a request has all of the one before at its
// beginning, whether a message was just made or read from the store, and in whatever order
// the tools come; and it is the same when it is sent again by another process.
func TestOnlyAppends(t *testing.T) {
	t.Parallel()
	for _, f := range Formats() {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				fake := &Provider{Format: f}
				asks, err := fake.Model("m1")
				if err != nil {
					t.Fatal(err)
				}
				specs := []holdfast.ToolSpec{
					{Name: "b"},
					{Name: "look", Parameters: json.RawMessage(`{ "type":"object" }`)},
					{Name: "c", Description: "<c>"},
				}
				req := &holdfast.ModelRequest{Thread: "t", Instructions: []string{"Be <kind>.", "Be brief."}}
				asked := 0
				// The frontend's facts of the moment are those of a run, which begins with
				// words of the user.
				var moment []holdfast.ContextItem
				for _, step := range turns(t, f) {
					if slices.ContainsFunc(step, func(m holdfast.Message) bool { return m.Role == holdfast.RoleUser }) {
						moment = nil
						if rapid.Bool().Draw(t, "says something of the moment") {
							moment = []holdfast.ContextItem{{Description: "time", Value: fmt.Sprint(asked)}}
						}
					}
					for _, m := range step {
						if rapid.Bool().Draw(t, "from the store") {
							m = reread(t, m)
						}
						req.Messages = append(req.Messages, m)
					}
					for range 2 { // the second is of a process that has only the store
						again := *req
						again.Tools = rapid.Permutation(specs).Draw(t, "tools")
						again.Context = moment
						for _, err := range asks.Stream(t.Context(), &again) {
							if err != nil {
								t.Fatal(err)
							}
						}
						asked++
						for i := range req.Messages {
							req.Messages[i] = reread(t, req.Messages[i])
						}
					}
				}
				if c := fake.Counts(); c.Requests != asked || c.Whole != asked-1 {
					t.Fatalf("%d of %d requests had all of the one before:\n%s", c.Whole, asked-1,
						strings.Join(c.Fouls, "\n"))
				}
			})
		})
	}
}
