package scripted

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
)

// situation is what the model needs to know about a request: the last user message and
// what has been done about it.
type situation struct {
	req  *holdfast.ModelRequest
	user string
	// media are what the user sent besides text.
	media []holdfast.Part
	// steps counts the answers with tool calls since then.
	steps int
	// results are those of the calls since then, in order.
	results []result
}

// result is a tool call and its outcome.
type result struct {
	tool   string
	text   string
	failed bool
}

func read(req *holdfast.ModelRequest) situation {
	s := situation{req: req}
	history := req.History()
	start := len(history)
	for i := len(history) - 1; i >= 0; i-- {
		if m := &history[i]; m.Role == holdfast.RoleUser {
			start = i + 1
			s.user = strings.TrimSpace(m.PlainText())
			for _, p := range m.Parts {
				if p.Type != holdfast.PartText {
					s.media = append(s.media, p)
				}
			}
			break
		}
	}
	tools := map[string]string{}
	for i := range history[start:] {
		m := &history[start+i]
		if len(m.Calls) > 0 {
			s.steps++
		}
		for _, c := range m.Calls {
			tools[c.ID] = c.Name
		}
		if m.Role == holdfast.RoleTool {
			s.results = append(s.results, newResult(tools[m.CallID], m))
		}
	}
	return s
}

// newResult reads a tool message. Whether the call failed is known from the message or,
// if the server itself gave the result, from its first words.
func newResult(tool string, m *holdfast.Message) result {
	r := result{tool: tool, text: m.PlainText(), failed: m.Error != ""}
	if r.text == "" {
		r.text = m.Error
	}
	for _, start := range []string{"No result", "Not started", "Outcome unknown", "There is no tool"} {
		r.failed = r.failed || strings.HasPrefix(r.text, start)
	}
	return r
}

// last returns the newest result; an empty one if there is none.
func (s situation) last() result {
	if len(s.results) == 0 {
		return result{text: "nothing"}
	}
	return s.results[len(s.results)-1]
}

// missing returns the first of these tools that the request does not offer.
func (s situation) missing(names ...string) string {
	for _, n := range names {
		if !slices.ContainsFunc(s.req.Tools, func(t holdfast.ToolSpec) bool { return t.Name == n }) {
			return n
		}
	}
	return ""
}

// String describes the outcome of the call in one line.
func (r result) String() string {
	if r.failed {
		return fmt.Sprintf("%s gave no proper result (%s)", r.tool, shorten(r.text))
	}
	return fmt.Sprintf("%s: %s", r.tool, shorten(r.text))
}

// summary lists results; if there are many, only the newest.
func summary(results []result) string {
	const most = 8
	var b strings.Builder
	if n := len(results) - most; n > 0 {
		fmt.Fprintf(&b, "(%d results before these are left out)\n", n)
		results = results[n:]
	}
	for _, r := range results {
		fmt.Fprintf(&b, "- %s\n", r)
	}
	return strings.TrimRight(b.String(), "\n")
}

// shorten turns a text into one line of bounded length.
func shorten(text string) string {
	const most = 120
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) <= most {
		return string(line)
	}
	return string(line[:most]) + "…"
}
