package middleware_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware"
)

// Large results: what the model is shown of them, and how it reads the rest.

// withResult is a conversation in which a call has this result.
func withResult(result holdfast.Message) []holdfast.Message {
	history := shape("uct")
	result.ID, result.Role, result.CallID = "t2", holdfast.RoleTool, "call1.1"
	history[1].Calls[0].ID, history[2] = "call1.1", result
	return history
}

// shownOf returns the request that the model gets.
func shownOf(t *testing.T, o middleware.LargeResultsOptions, history []holdfast.Message) (got *holdfast.ModelRequest) {
	t.Helper()
	m := middleware.LargeResults(o)
	model := m.Model(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		got = req
		return hooktest.Says(holdfast.Delta{Finish: holdfast.FinishStop})(nil, nil)
	})
	tools := []holdfast.ToolSpec{{Name: "look"}, m.Tools[0].Spec(), {Name: "move"}}
	for range model(t.Context(), &holdfast.ModelRequest{Messages: history, Tools: tools}) {
	}
	if len(tools) != 3 || tools[1].Name != middleware.ReadResult {
		t.Error("the list of tools was changed")
	}
	return got
}

func toolNames(req *holdfast.ModelRequest) string {
	var names []string
	for _, t := range req.Tools {
		names = append(names, t.Name)
	}
	return strings.Join(names, " ")
}

var smallLarge = middleware.LargeResultsOptions{MaxBytes: 1024}

// TestLargeResultsAreShortened: to their beginning and end, always in the same way, and
// only in what the model is shown.
func TestLargeResultsAreShortened(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 200) + "the end."
	short := long[:128] + "\n[The middle of this result is left out: the first 128 and the last 32 of " +
		"its 2008 bytes are shown. " +
		`To read on, call read_result with {"call":"call1.1","offset":128}.]` + "\n" + long[len(long)-32:]
	image := holdfast.Part{Type: holdfast.PartImage, Source: &holdfast.Source{Value: long}}
	half := holdfast.Part{Type: holdfast.PartText, Text: long[:1004], ID: "p"}
	rest := holdfast.Part{Type: holdfast.PartText, Text: long[1004:]}
	for name, c := range map[string]struct{ result, want holdfast.Message }{
		"text":     {holdfast.Message{Text: long}, holdfast.Message{Text: short}},
		"an error": {holdfast.Message{Text: "no", Error: long}, holdfast.Message{Text: "no", Error: short}},
		"parts": {holdfast.Message{Parts: []holdfast.Part{image, half, image, rest}},
			holdfast.Message{Parts: []holdfast.Part{image, {Type: holdfast.PartText, Text: short, ID: "p"}, image}}},
		"just right": {holdfast.Message{Text: long[:1024]}, holdfast.Message{Text: long[:1024]}},
		"an image": {holdfast.Message{Parts: []holdfast.Part{image, half}},
			holdfast.Message{Parts: []holdfast.Part{image, half}}},
	} {
		history := withResult(c.result)
		before := slices.Clone(history)
		got := shownOf(t, smallLarge, history)
		c.want.ID, c.want.Role, c.want.CallID = "t2", holdfast.RoleTool, "call1.1"
		if !reflect.DeepEqual(got.Messages[2], c.want) {
			t.Errorf("%s: shown is %+v", name, got.Messages[2])
		}
		if !reflect.DeepEqual(history, before) {
			t.Errorf("%s: the history was changed", name)
		}
		if again := shownOf(t, smallLarge, history); !reflect.DeepEqual(again.Messages, got.Messages) {
			t.Errorf("%s: the second time %+v is shown", name, again.Messages)
		}
		tools, cut := "look read_result move", "tools"
		if reflect.DeepEqual(c.want, before[2]) {
			tools, cut = "look move", ""
		}
		if toolNames(got) != tools || got.Cut != cut {
			t.Errorf("%s: the tools are %q, the cut is %q", name, toolNames(got), got.Cut)
		}
	}
	later := append(withResult(holdfast.Message{Text: long}), shape("uctau")[3:]...)
	if got := shownOf(t, smallLarge, later); got.Cut != "" || toolNames(got) != "look read_result move" {
		t.Errorf("later the cut is %q", got.Cut)
	}
	// No character is split, and what people have written is theirs.
	got := shownOf(t, smallLarge, withResult(holdfast.Message{Text: "x" + strings.Repeat("é", 1000) + "y"}))
	if text := got.Messages[2].Text; !strings.HasPrefix(text, "x"+strings.Repeat("é", 63)+"\n[") ||
		!strings.HasSuffix(text, "\n"+strings.Repeat("é", 15)+"y") {
		t.Errorf("got %q", text)
	}
	said := shape("u")
	said[0].Text = long
	if got := shownOf(t, smallLarge, said); got.Messages[0].Text != long {
		t.Errorf("shown of a question is %q", got.Messages[0].Text)
	}
}

// TestReadResult: the tool returns parts of a result, and says where they stand.
func TestReadResult(t *testing.T) {
	t.Parallel()
	lines := "" // 30 bytes each
	for i := range 100 {
		lines += fmt.Sprintf("line %03d: a word, another one\n", i)
	}
	run := hooktest.New(t)
	history := withResult(holdfast.Message{Text: lines})
	parts := []holdfast.Part{
		{Type: holdfast.PartText, Text: "ab"},
		{Type: holdfast.PartImage},
		{Type: holdfast.PartText, Text: "cdé"},
	}
	history = append(history, shape("uctct")...)
	history[4].Calls[0].ID, history[5] = "parts", holdfast.Message{
		Role:   holdfast.RoleTool,
		CallID: "parts",
		Parts:  parts,
	}
	history[6].Calls[0].ID, history[7] = "failed", holdfast.Message{
		Role:   holdfast.RoleTool,
		CallID: "failed",
		Error:  "it broke",
	}
	history = append(history, shape("ct")...)
	history[8].Calls[0].ID, history[9] = "both", holdfast.Message{
		Role:   holdfast.RoleTool,
		CallID: "both",
		Text:   "no",
		Error:  lines,
	}
	history = append(history, holdfast.Message{Role: holdfast.RoleAssistant, Calls: []holdfast.ToolCall{{ID: "open"}}})
	run.History.Set(history)
	tool := middleware.LargeResults(middleware.LargeResultsOptions{MaxBytes: 1200}).Tools[0]
	if s := tool.Spec(); s.Name != "read_result" || s.Effect != holdfast.EffectPure {
		t.Errorf("the tool is %+v", s)
	}
	for _, c := range []struct {
		args, want string
		failed     bool
	}{
		{`{"call":"call1.1"}`, lines[:600] + "\n[bytes 0 to 600 of 3000; go on with offset 600]", false},
		{`{"call":"call1.1","offset":600,"limit":10}`, "line 020: \n[bytes 600 to 610 of 3000; go on with offset 610]",
			false},
		{`{"call":"call1.1","offset":2990,"limit":100000}`, lines[2990:] + "\n[bytes 2990 to 3000: the end]", false},
		{`{"call":"parts","limit":1}`, "abcd\n[bytes 0 to 4 of 6; go on with offset 4]", false},
		{`{"call":"parts","offset":5}`, "é\n[bytes 4 to 6: the end]", false},
		{`{"call":"failed"}`, "it broke\n[bytes 0 to 8: the end]", false},
		{`{"call":"both","offset":600,"limit":10}`, "line 020: \n[bytes 600 to 610 of 3000; go on with offset 610]",
			false}, // what was shortened
		{`{"call":"call1.1","pattern":"line 07[89]"}`, "offset 2260: " + lines[2260:2428] + "\n[these", false},
		{`{"call":"call1.1","pattern":"(?i)LINE 099","offset":100}`, "offset 2890: " + lines[2890:] +
			"\n[these are all places from offset 100 on, of 3000 bytes]", false},
		{`{"call":"call1.1","pattern":"(?s)line 010.*"}`, "offset 220: " + lines[220:540] +
			"\n[these are all places from offset 0 on, of 3000 bytes]", false},
		{`{"call":"call1.1","pattern":"word","limit":300}`, "[3 places are shown; go on with offset 282]", false},
		{`{"call":"call1.1","pattern":"x*","offset":7}`, "[nothing from offset 7 on matches, of 3000 bytes]", false},
		{`{"call":"call1.1","pattern":"["}`, "the pattern cannot be used: ", true},
		{`{"call":"call1.1","pattern":"` + strings.Repeat("[a-z]{1000}", 45) + `"}`,
			"the pattern cannot be used: for a result of this size", true}, // it took minutes on a large one
		{`{"call":"call1.1","pattern":"` + strings.Repeat("a", 501) + `"}`,
			"the pattern cannot be used: it has 501 bytes, 500 are allowed", true},
		{`{"call":"call1.1","offset":3000}`, "the result has 3000 bytes, so there is nothing at offset 3000", true},
		{`{"call":"call1.1","offset":-1}`, "offset and limit are not negative; nothing was read", true},
		{`{"call":"open"}`, `the call "open" has no result yet`, true},
		{`{"call":"other"}`, `there is no call "other" in this conversation; the note in a shortened ` +
			`result has the id of its call`,
			true},
	} {
		got, err := tool.Call(run.Context(), holdfast.ToolCall{Name: "read_result", Arguments: json.RawMessage(c.args)})
		if err != nil || !strings.Contains(got.Text, c.want) || got.Failed != c.failed || len(got.Text) > 1200 {
			t.Errorf("%s:\n got %q, %v\nwant %q", c.args, got.Text, err, c.want)
		}
	}
	if _, err := tool.Call(run.Context(),
		holdfast.ToolCall{Arguments: json.RawMessage(`{"offset":"far"}`)}); err == nil ||
		!strings.Contains(err.Error(), "nothing was run") {
		t.Errorf("invalid arguments: %v", err)
	}
}

// TestALargeResultIsReadLater: by every agent without any configuration, in a later run,
// on another server, and not from another thread.
func TestALargeResultIsReadLater(t *testing.T) {
	t.Parallel()
	whole := strings.Repeat("0123456789", 10_000) + "the secret word is plum"
	var call, seen string
	model := hooktest.Scripted(func(req *holdfast.ModelRequest) []holdfast.Delta {
		last := req.Messages[len(req.Messages)-1]
		use := func(tool, args string) []holdfast.Delta {
			return []holdfast.Delta{
				{Call: &holdfast.CallDelta{Name: tool, Arguments: args}, Finish: holdfast.FinishToolCalls},
			}
		}
		switch {
		case last.Role == holdfast.RoleTool:
			if strings.Contains(last.Text, "left out") {
				call = last.CallID
			}
			seen = last.Text
			return []holdfast.Delta{
				{Text: fmt.Sprintf("%d bytes, tools %s", len(last.Text), toolNames(req)), Finish: holdfast.FinishStop},
			}
		case last.Text == "fetch":
			return use("fetch", "{}")
		}
		return use("read_result", fmt.Sprintf(`{"call":%q,"pattern":"secret word is \\w+"}`, call))
	})
	fetch := holdfast.NewTool("fetch", "fetches", func(context.Context, struct{}) (string, error) { return whole, nil })
	agent := holdfast.Agent{Model: model, Tools: []holdfast.Tool{fetch}}
	c := hooktest.Serve(t, agent, nil)
	got := c.Run("fetch")
	if all, text := hooktest.Results(got), hooktest.Text(got); len(all) != 1 || all[0] != whole ||
		!strings.Contains(text, "read_result") {
		t.Errorf("the person was shown %d results: %.2000s", len(all), text)
	}
	if len(seen) > 12<<10 || !strings.HasSuffix(seen, "plum") {
		t.Errorf("the model was shown %d bytes", len(seen))
	}
	c.Restart()
	if got := hooktest.Results(c.Run("read")); len(got) != 1 || !strings.Contains(got[0], "the secret word is plum") {
		t.Errorf("read: %q", got)
	}
	c.Thread("other")
	if got := hooktest.Results(c.Run("read")); len(got) != 1 || strings.Contains(got[0], "plum") ||
		!strings.Contains(got[0], "there is no call") {
		t.Errorf("read from another thread: %q", got)
	}
}

func TestLargeResultsMistakes(t *testing.T) {
	t.Parallel()
	hooktest.WantInvalid(t, "middleware.LargeResults", middleware.LargeResults,
		map[string]middleware.LargeResultsOptions{
			"write at least 1024":      {MaxBytes: 100},
			"leave one of them out":    {MaxBytes: 2000, Off: true},
			"maxBytes is -1; write at": {MaxBytes: -1},
		})
	if m := middleware.LargeResults(middleware.LargeResultsOptions{Off: true}); m.Model != nil || m.Tools != nil ||
		m.Name == "" {
		t.Errorf("turned off it is %+v", m)
	}
}
