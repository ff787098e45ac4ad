package agui_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/agui"
)

// answersOnly are the codes with which requests are refused. No run and no stream ends with
// them, so they have no words for the person in front of the page.
var answersOnly = []string{
	codes.AnswersMissing,
	codes.BodyTimeout,
	codes.ForbiddenHost,
	codes.ForbiddenOrigin,
	codes.HistoryDiverged,
	codes.HistoryNotKept,
	codes.CallAlreadyAnswered,
	codes.CallClosed,
	codes.CallExpired,
	codes.CallPending,
	codes.InterruptAlreadyAnswered,
	codes.InterruptExpired,
	codes.Interrupted,
	codes.InvalidAnswer,
	codes.InvalidCursor,
	codes.InvalidInput,
	codes.MediaRefused,
	codes.MethodNotAllowed,
	codes.NothingToRun,
	codes.PayloadTooLarge,
	codes.RunIDReused,
	codes.RunInProgress,
	codes.Starting,
	codes.StateConflict,
	codes.StateInvalid,
	codes.NotAcceptable,
	codes.ThreadExists,
	codes.TooManyBodies,
	codes.UnknownToolCall,
	codes.UnsupportedMediaType,
	codes.WrongAgent,
}

// allCodes returns the values of the constants in package codes.
func allCodes(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../codes/codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			for _, value := range v.Values {
				text, err := strconv.Unquote(value.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, text)
			}
		}
		return true
	})
	return list
}

// forProgrammers is what a text for people has none of: requests, routes, JSON, names of
// fields, flags and codes.
var forProgrammers = regexp.MustCompile(`\b(GET|POST|PUT|PATCH|DELETE|HTTP|JSON|API|POSTs?)\b|[/{}\[\]"` + "`" +
	`_%]|--|threadId|runId|checkpoint|middleware|thread\b`)

// TestRunErrorIsForThePerson: for every code that can end a run, the message says what
// happened and what to do in words for people, and the hint has the whole text of the error.
func TestRunErrorIsForThePerson(t *testing.T) {
	const what, next = `The thread "t7" stopped at iteration 3.`, `POST the same threadId with ` +
		`"messages": [] and a new runId.`
	all := allCodes(t)
	if len(all) < 50 {
		t.Fatalf("only %d codes were found", len(all))
	}
	for _, code := range all {
		e := holdfast.Errorf(code, what).WithHint(next)
		said := agui.PersonText(e)
		if ends := said != e.Message || code == codes.ModelFailed; ends == slices.Contains(answersOnly, code) {
			t.Errorf("%s: either it has words for people or it only refuses requests", code)
		}
		if said == e.Message {
			continue // a request is refused with it, or the model has said it
		}
		if forProgrammers.MatchString(said) || !strings.HasSuffix(said, ".") {
			t.Errorf("%s: people read %q", code, said)
		}
		var sent struct {
			Message, Code string
			Metadata      struct{ Holdfast struct{ Hint string } }
		}
		ev := agui.NewRunError(e)
		data := agui.Append(nil, ev)
		if err := json.Unmarshal(data, &sent); err != nil {
			t.Fatal(err)
		}
		if sent.Code != code || sent.Message != said || sent.Metadata.Holdfast.Hint != what+" "+next ||
			ev.FullText() != what+" "+next {
			t.Errorf("%s: %s", code, data)
		}
		if old, ok := agui.DialectLegacy.Event(data); !ok || string(old) != string(data) {
			t.Errorf("%s: the older dialect has %s", code, old)
		}
	}
}

// TestNoModelAnswered: for every kind of failure people read what happened and what to do,
// and developers what the model's error says.
func TestNoModelAnswered(t *testing.T) {
	const public, next = "The model's provider limits the rate of requests.", "POST again."
	page, err := os.ReadFile("../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, kind := range failure.Kinds() {
		for _, retryable := range []bool{false, true} {
			ev := agui.NewRunError(holdfast.Errorf(codes.ModelFailed, public).
				WithHint(next).
				Wrap(&holdfast.ModelError{Kind: kind, Retryable: retryable}))
			if said := ev.Message; said == public || forProgrammers.MatchString(said) ||
				!strings.HasSuffix(said, ".") || strings.Count(said, ".") != 2 || ev.FullText() != public+" "+next {
				t.Errorf("%s: people read %q, developers %q", kind, said, ev.FullText())
			}
			if !strings.Contains(string(page), fmt.Sprintf("\n| `%s` | %s |\n", kind, ev.Message)) {
				t.Errorf("docs/models.md does not say what people read of %s", kind)
			}
			seen[ev.Message] = true
		}
	}
	if len(seen) != len(failure.Kinds()) {
		t.Errorf("%d kinds have %d texts", len(failure.Kinds()), len(seen))
	}
}

// TestRunErrorOfOthers: the codes of extensions and what a model says speak for themselves.
func TestRunErrorOfOthers(t *testing.T) {
	overloaded := holdfast.Errorf(codes.ModelFailed, "It is overloaded.").WithHint("POST again.")
	for name, tt := range map[string]struct {
		e             *holdfast.Error
		message, hint string
	}{
		"an extension": {holdfast.Errorf("too_dear", "That is too dear."), "That is too dear.", ""},
		"with a hint": {holdfast.Errorf("too_dear", "That is too dear.").WithHint("Raise the \"limit\"."),
			"That is too dear.", `That is too dear. Raise the "limit".`},
		"a model for good": {overloaded.Wrap(&holdfast.ModelError{}), "It is overloaded.",
			"It is overloaded. POST again."},
		"a model for a moment": {overloaded.Wrap(&holdfast.ModelError{Retryable: true}),
			"It is overloaded. Try again in a moment.", "It is overloaded. POST again."},
	} {
		ev, err := agui.DecodeEvent(agui.Append(nil, agui.NewRunError(tt.e)))
		if err != nil {
			t.Fatal(err)
		}
		said := ev.(agui.RunError)
		var metadata struct{ Holdfast struct{ Hint string } }
		if len(said.Metadata) > 0 {
			if err := json.Unmarshal(said.Metadata, &metadata); err != nil {
				t.Fatal(err)
			}
		}
		if said.Message != tt.message || metadata.Holdfast.Hint != tt.hint ||
			said.FullText() != agui.FullText(tt.e) && tt.hint != "" {
			t.Errorf("%s: %+v", name, said)
		}
	}
}
