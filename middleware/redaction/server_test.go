package redaction_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/activity"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware/redaction"
)

// TestNothingOfASecretIsLeft: a tool returns a secret, and the model says others in
// pieces. None of them is in the stream, in the history or in the log.
func TestNothingOfASecretIsLeft(t *testing.T) {
	t.Parallel()
	fetch := holdfast.NewTool("fetch", "", func(context.Context, struct{}) (string, error) {
		return "the key: " + secrets["aws"], nil
	})
	model := hooktest.Scripted(func(req *holdfast.ModelRequest) []holdfast.Delta {
		switch last := req.Messages[len(req.Messages)-1]; {
		case last.Role == holdfast.RoleTool:
			if strings.Contains(last.Text, secrets["aws"]) {
				t.Error("the model sees the secret")
			}
			return pieces("It says "+secrets["jwt"]+".", 5)
		default:
			return []holdfast.Delta{{Reasoning: "I know " + secrets["github"][:9]}, {Reasoning: secrets["github"][9:]},
				{Call: &holdfast.CallDelta{Name: "fetch", Arguments: "{}"}, Finish: holdfast.FinishToolCalls}}
		}
	})
	c := hooktest.Serve(t, holdfast.Agent{Model: model, Tools: []holdfast.Tool{fetch},
		Middleware: []holdfast.Middleware{redaction.New(redaction.Options{})}}, nil)
	stream := hooktest.Text(c.Run("go"))
	history := hooktest.Ask(t, c, http.MethodGet, "/threads/t/messages", nil)
	for name, text := range map[string]string{"stream": stream, "history": history,
		"log": strings.Join(c.Log(), "\n")} {
		for _, secret := range []string{"aws", "jwt", "github"} {
			if strings.Contains(text, secrets[secret]) || strings.Contains(text, secrets[secret][10:]) {
				t.Errorf("%s is in the %s: %s", secret, name, text)
			}
		}
	}
	for _, want := range []string{
		`"content":"the key: [redacted:api_key]"`, "RUN_FINISHED",
		`{"where":["model","tool:fetch"],"names":["api_key"],"count":2}`,
		`{"where":["model"],"names":["jwt"],"count":1}`,
	} {
		if !strings.Contains(stream, want) {
			t.Errorf("no %s in %s", want, stream)
		}
	}
	if !strings.Contains(history, "It says [redacted:jwt].") ||
		strings.Count(stream, `"name":"holdfast.redacted"`) != 2 {
		t.Errorf("%s\n%s", history, stream)
	}
}

// TestASecretInAnActivity: what a hook or a tool records is redacted as a message is.
func TestASecretInAnActivity(t *testing.T) {
	t.Parallel()
	seen := 0
	note := holdfast.NewTool("note", "", func(ctx context.Context, _ struct{}) (string, error) {
		seen = len(holdfast.HistoryFrom(ctx))
		if err := holdfast.Notify(ctx, "test.noted", holdfast.IterationFrom(ctx).Thread); err != nil {
			t.Error(err)
		}
		return "noted", holdfast.Record(ctx, "test.note", map[string]string{"text": "the key: " + secrets["aws"]})
	})
	c := hooktest.Serve(t, holdfast.Agent{Model: hooktest.CallThenSay("note"), Tools: []holdfast.Tool{note},
		Middleware: []holdfast.Middleware{redaction.New(redaction.Options{})}}, nil)
	r := c.Run("go")
	stream, history := hooktest.Text(r), hooktest.Ask(t, c, http.MethodGet, "/threads/t/messages", nil)
	if strings.Contains(stream+history, secrets["aws"]) ||
		!strings.Contains(history, `{"text":"the key: [redacted:api_key]"}`) {
		t.Errorf("%s\n%s", stream, history)
	}
	if got := hooktest.Notices(r, "test.noted"); len(got) != 1 || got[0] != `"t"` || seen != 2 ||
		!strings.Contains(stream, `"where":["activity:test.note"]`) {
		t.Errorf("%d messages were seen: %s", seen, stream)
	}
}

// TestASecretThatIsShown: so is what changes while a tool works, and the name of a step.
func TestASecretThatIsShown(t *testing.T) {
	t.Parallel()
	show := holdfast.NewTool("show", "", func(ctx context.Context, _ struct{}) (string, error) {
		a, err := activity.Show(ctx, "test.shown", map[string]string{"text": "nothing yet"})
		if err != nil {
			return "", err
		}
		finish, err := activity.Step(ctx, "with "+secrets["aws"])
		if err != nil {
			return "", err
		}
		defer finish()
		return "shown", a.Set(ctx, map[string]string{"text": "the key: " + secrets["aws"]})
	})
	c := hooktest.Serve(t, holdfast.Agent{Model: hooktest.CallThenSay("show"), Tools: []holdfast.Tool{show},
		Middleware: []holdfast.Middleware{redaction.New(redaction.Options{})}}, nil)
	stream := hooktest.Text(c.Run("go"))
	history := hooktest.Ask(t, c, http.MethodGet, "/threads/t/messages", nil)
	if strings.Contains(stream+history, secrets["aws"]) || !strings.Contains(history, "the key: [redacted:api_key]") ||
		strings.Count(stream, "with [redacted:api_key]") != 2 ||
		!strings.Contains(stream, `"where":["step","activity:test.shown"]`) {
		t.Errorf("%s\n%s", stream, history)
	}
}

// TestASecretInAnError: it is neither in the stream nor in the log.
func TestASecretInAnError(t *testing.T) {
	t.Parallel()
	fetch := holdfast.NewTool("fetch", "", func(context.Context, struct{}) (string, error) {
		return "", fmt.Errorf("cannot reach %s", "redis://u:"+secrets["url_password"]+"@h")
	})
	model := holdfast.ModelFunc(func(_ context.Context, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
		return func(yield func(holdfast.Delta, error) bool) {
			if req.Iteration == 0 {
				yield(
					holdfast.Delta{
						Call:   &holdfast.CallDelta{Name: "fetch", Arguments: "{}"},
						Finish: holdfast.FinishToolCalls,
					},
					nil,
				)
				return
			}
			yield(holdfast.Delta{}, &holdfast.ModelError{
				Public: "Key " + secrets["aws"] + " is refused.",
				Err:    fmt.Errorf("401 for %s", secrets["aws"]),
			})
		}
	})
	c := hooktest.Serve(t, holdfast.Agent{Model: model, Tools: []holdfast.Tool{fetch},
		Middleware: []holdfast.Middleware{redaction.New(redaction.Options{})}}, nil)
	stream := hooktest.Text(c.Run("go"))
	if !strings.Contains(stream, "redis://u:[redacted:url_password]@h") ||
		!strings.Contains(stream, "Key [redacted:api_key] is refused.") {
		t.Error(stream)
	}
	if log := strings.Join(c.Log(), "\n"); strings.Contains(stream+log, secrets["aws"]) ||
		strings.Contains(stream+log, secrets["url_password"]) || !strings.Contains(log, "401 for [redacted:api_key]") {
		t.Errorf("%s\n%s", stream, log)
	}
}
