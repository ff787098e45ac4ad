package remote_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/remote"
)

// TestFrameworks: the streams of frameworks, with their quirks, come to the same history.
func TestFrameworks(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d streams: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			stream, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				h := start(t, newScript(t, string(stream)), remote.Options{})
				messages := `u:go | a:I look it up. get_weather{"city":"Bern"} | t:sunny | a:It is sunny.`
				if strings.Contains(string(stream), "THINKING") {
					messages = `u:go | r:The weather | a: get_weather{"city":"Bern"} | t:sunny | a:It is sunny.`
				}
				want(t, h.Run("go"), agenttest.Success, messages)
			})
		})
	}
}

// TestRefused: a stream that cannot be understood ends the run, and the log says which event it was.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct{ stream, log string }{
		"arguments of nothing": {`{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"x"}`,
			`TOOL_CALL_ARGS: the call \"c\" has not begun`},
		"a late argument": {calls("c", "search", "{}") + `{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"x"}`,
			`TOOL_CALL_ARGS: the call \"c\" is complete`},
		"no type":        {`{"x":1}`, "an event has no type"},
		"a wrong member": {`{"type":"TEXT_MESSAGE_CONTENT","messageId":1,"delta":"x"}`, "decode TEXT_MESSAGE_CONTENT"},
		"a deep event": {`{"type":"RAW","event":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`,
			"nested more than 256 deep"},
		"words behind a call here": {calls("c1", "search", "{}") + calls("c2", "page", "{}") + results("c1", "x") +
			says("m", "And?"), "an agent's message follows a call whose result it waits for"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := agenttest.New(t, agenttest.Config{
					Model:         newScript(t, started+c.stream+finished).agent(remote.Options{OnCut: "retry"}),
					FrontendTools: page,
				})
				r := h.Run("go")
				if r.Outcome != agenttest.Failed || r.Code != "model_failed" {
					t.Errorf("%s %s %s", r.Outcome, r.Code, history(r.Messages))
				}
				if log := strings.Join(h.Log(), "\n"); !strings.Contains(log, c.log) {
					t.Errorf("the log does not say %q:\n%s", c.log, log)
				}
			})
		})
	}
}

// TestErrors: what an agent says of its failures is the failure of a model, and asking again may help.
func TestErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, `{"type":"RUN_ERROR","message":"the model is overloaded"}`,
			started+says("m", "Well.")+finished)
		want(t, start(t, s, remote.Options{}).Run("go"), agenttest.Success, `u:go | a:Well.`)
	})
}
