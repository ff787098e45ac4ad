package hooks

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/holdfast-agents/holdfast"
)

// The form of an answer, for models whose provider does not enforce it: the model is told
// before everything else, where the text is the same in each request, and the fence that such
// models like to put around JSON is removed while the answer streams. Around an answer whose
// provider enforces the form a fence is a mistake like any other.

// outputText is what such a model is told.
const outputText = `When you have called all tools that you need, your last answer must be JSON ` +
	`that fits the following JSON Schema, and nothing else: no words before or after it, and no code fence.
%s
<schema name=%q>
%s
</schema>`

// formed asks a model. It is told about the form of its answer if its provider does not
// enforce that.
func formed(ctx context.Context, m holdfast.Model, req *holdfast.ModelRequest) iter.Seq2[holdfast.Delta, error] {
	enforcing, can := m.(interface {
		EnforcesOutput(*holdfast.ModelRequest) bool
	})
	if req.Output == nil || can && enforcing.EnforcesOutput(req) {
		return m.Stream(ctx, req)
	}
	told := *req
	text := fmt.Sprintf(outputText, req.Output.Description, req.Output.Name, req.Output.Schema)
	told.Output, told.Instructions = nil, append([]string{text}, req.Instructions...)
	return unfenced(m.Stream(ctx, &told))
}

// unfenced removes a code fence that is around the whole text of an answer.
func unfenced(answer iter.Seq2[holdfast.Delta, error]) iter.Seq2[holdfast.Delta, error] {
	return func(yield func(holdfast.Delta, error) bool) {
		var f fence
		for d, err := range answer {
			if err == nil {
				d.Text = f.pass(d.Text)
				if d.Call != nil || d.Finish != "" || d.More {
					d.Text += f.end()
				}
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// fence finds a fence while the text streams: what may belong to one is held back.
type fence struct {
	begun  bool   // it is known whether there is a fence
	fenced bool   // there is one
	held   string // what may belong to it
}

const fenceMark = "```"

// opener returns how much of a text opens a fence, with its line; whole is false if more
// text may tell.
func opener(text string) (length int, is, whole bool) {
	rest := strings.TrimLeft(text, " \t\r\n")
	if len(rest) < len(fenceMark) && strings.HasPrefix(fenceMark, rest) {
		return 0, false, false
	}
	if !strings.HasPrefix(rest, fenceMark) {
		return 0, false, true
	}
	line, _, ended := strings.Cut(rest, "\n")
	switch language := strings.TrimSpace(strings.TrimPrefix(line, fenceMark)); {
	case language != "" && !strings.HasPrefix("json", strings.ToLower(language)),
		ended && language != "" && !strings.EqualFold(language, "json"):
		return 0, false, true
	case !ended:
		return 0, false, false
	}
	return len(text) - len(rest) + len(line) + 1, true, true
}

// pass returns what can be passed on of the text so far.
func (f *fence) pass(text string) string {
	if text == "" || f.begun && !f.fenced {
		return text
	}
	text = f.held + text
	if !f.begun {
		length, is, whole := opener(text)
		if !whole {
			f.held = text
			return ""
		}
		f.begun, f.fenced = true, is
		text = text[length:]
	}
	f.held = ""
	if !f.fenced {
		return text
	}
	// The possible end of the fence begins with the spaces before it.
	keep := len(strings.TrimRight(strings.TrimRight(strings.TrimRight(text, " \t\r\n"), "`"), " \t\r\n"))
	f.held = text[keep:]
	return text[:keep]
}

// end returns the rest of the text, without the end of the fence.
func (f *fence) end() string {
	rest, fenced := f.held, f.fenced
	*f = fence{begun: true}
	if fenced && strings.TrimSpace(rest) == fenceMark {
		return ""
	}
	return rest
}
