package scripted

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
)

// TestDojo: what the dojo's page offers to say makes the call that its feature is about, and what
// is said at the end comes from the result.
func TestDojo(t *testing.T) {
	t.Parallel()
	recipe := json.RawMessage(`{"recipe":{"title":"Soup","ingredients":[{"name":"Water"}],"special_preferences":[]}}`)
	for user, c := range map[string]struct {
		tool, args, result, want string
	}{
		"Change the background to a sunset": {"change_background", "linear-gradient", "done", "is a sunset now"},
		"Make the background teal.":         {"change_background", `{"background":"teal"}`, "done", "teal"},
		"What is the weather like in Oslo?": {"get_weather", `{"location":"Oslo"}`,
			`{"conditions":"Rainy","temperature":7.5}`, "In Oslo it is 7.5 °C and rainy."},
		"weather in Rome": {"get_weather", `{"location":"Rome"}`, "It is hot.", "It is hot."},
		"Plan a trip to Mars in 3 steps": {"generate_task_steps", `"status":"enabled"`,
			`{"accepted":true,"steps":[{"description":"Pack"},{"description":"Go"}]}`, "these 2 steps:\n- Pack\n- Go"},
		"plan a party": {"generate_task_steps", "Say what is wanted: a party", `{"accepted":false}`,
			"leave it"},
		"Write a haiku about the sea": {"generate_haiku", `"japanese":["古い綱"`, "shown", "about the sea"},
		"write a haiku":               {"generate_haiku", `"english":["An old rope holds fast"`, "shown", "my haiku"},
		"Improve the recipe.":         {"generate_recipe", `{"name":"Water"},{"amount"`, "changed", "“Soup”"},
		"Write a story about a pirate": {"write_document", "# The story of a pirate", "kept",
			"about a pirate is kept"},
		"Book a call about prices": {"schedule_meeting", `{"topic":"a call about prices"}`, "Booked.", "Booked."},
		"schedule a review with Alice": {"schedule_meeting", `{"attendee":"Alice","topic":"a review"}`, "Booked.",
			"Booked."},
		"write a story about a mermaid": {"write_document", "a mermaid", "The person did not allow this call.",
			"I leave it"},
		"change the background to gray": {"change_background", "gray", "No result: it was not answered.",
			"no proper result"},
	} {
		req := userSays(user)
		req.Tools, req.State = tools(c.tool), recipe
		got := converse(t, req, func(holdfast.ToolCall) string { return c.result })
		if len(got) != 2 || len(got[0].calls) != 1 || got[0].calls[0].Name != c.tool {
			t.Errorf("%s: got %+v, want a call of %s and an answer", user, got, c.tool)
			continue
		}
		if args := string(got[0].calls[0].Arguments); !strings.Contains(args, c.args) {
			t.Errorf("%s: the arguments are %s, want %s in them", user, args, c.args)
		}
		if !strings.Contains(got[1].text, c.want) {
			t.Errorf("%s: at the end it says %q, want %q in it", user, got[1].text, c.want)
		}
		// Without the tool it is chat.
		if got := listen(t, New(Options{}), userSays(user)); !strings.Contains(got.text, "You said") {
			t.Errorf("%s: without the tool it says %q", user, got.text)
		}
	}
}

// TestDojoPlan: the steps of a plan are finished one after the other.
func TestDojoPlan(t *testing.T) {
	t.Parallel()
	req := userSays("plan a trip to Mars in 3 steps")
	req.Tools = tools("create_plan", "update_plan_step")
	var calls []string
	for _, s := range converse(t, req, ok) {
		for _, c := range s.calls {
			calls = append(calls, c.Name+" "+string(c.Arguments))
		}
	}
	want := []string{
		`create_plan {"steps":["Say what is wanted: a trip to Mars","Find out what others have learned",` +
			`"List what is needed"]}`,
		`update_plan_step {"index":0,"status":"completed"}`,
		`update_plan_step {"index":1,"status":"completed"}`,
		`update_plan_step {"index":2,"status":"completed"}`,
	}
	if strings.Join(calls, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(calls, "\n"), strings.Join(want, "\n"))
	}
}

// TestDojoRecipe: without a recipe there is nothing to improve.
func TestDojoRecipe(t *testing.T) {
	t.Parallel()
	req := userSays("improve the recipe")
	req.Tools = tools("generate_recipe")
	if got := listen(t, New(Options{}), req); len(got.calls) > 0 || !strings.Contains(got.text, "no recipe yet") {
		t.Errorf("got %+v", got)
	}
}

// TestDescribe: of a file is told what can be told without seeing it.
func TestDescribe(t *testing.T) {
	t.Parallel()
	dot := "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	req := &holdfast.ModelRequest{Messages: []holdfast.Message{{Role: holdfast.RoleUser, Parts: []holdfast.Part{
		{Type: holdfast.PartText, Text: "What is this?"},
		{Type: holdfast.PartImage, Source: &holdfast.Source{Type: holdfast.SourceData, MIMEType: "image/png",
			Value: dot}},
		{Type: holdfast.PartDocument, Source: &holdfast.Source{Type: holdfast.SourceData, MIMEType: "text/plain",
			Value: base64.StdEncoding.EncodeToString([]byte("hello"))}},
		{Type: holdfast.PartAudio, Source: &holdfast.Source{Type: holdfast.SourceURL, MIMEType: "audio/wav",
			Value: "https://example.com/a.wav"}},
		{Type: holdfast.PartVideo},
	}}}}
	const want = "\n- image, image/png, 1 × 1 pixels, 70 bytes\n- document, text/plain, 5 bytes\n" +
		"- audio, audio/wav, somewhere else\n- video"
	if got := listen(t, New(Options{}), req); !strings.HasSuffix(got.text, want) {
		t.Errorf("got %q", got.text)
	}
	if got := listen(t, New(Options{}), userSays("what is this?")); !strings.Contains(got.text, "You said") {
		t.Errorf("without a file: got %q", got.text)
	}
}
