package scripted

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
)

// answer is one answer of the model, before it is split into deltas.
type answer struct {
	reasoning string
	text      string
	media     []*holdfast.Part
	calls     []call
	// free: the text does not have the form that an answer must have.
	free bool
	// pace multiplies the pause between deltas.
	pace int
	// finish is empty for an answer that breaks off.
	finish holdfast.FinishReason
	// fail ends the answer instead of finish.
	fail error
}

type call struct {
	name string
	args string
}

// say answers with a text.
func say(format string, args ...any) answer {
	return answer{text: fmt.Sprintf(format, args...), pace: 1, finish: holdfast.FinishStop}
}

// with adds tool calls, which the server runs in parallel.
func (a answer) with(calls ...call) answer {
	a.calls = append(a.calls, calls...)
	a.finish = holdfast.FinishToolCalls
	return a
}

// callTool makes a call with named arguments: name, value, name, value.
func callTool(name string, members ...any) call {
	args := map[string]any{}
	for i := 0; i+1 < len(members); i += 2 {
		args[fmt.Sprint(members[i])] = members[i+1]
	}
	b, err := json.Marshal(args)
	if err != nil {
		return call{name, "{}"}
	}
	return call{name, string(b)}
}

// deltas splits the answer into what is streamed: words, then pieces of the calls, one
// of each call in turn, as providers do with parallel calls. The ids are those of a
// careless provider: the same in every answer.
func (a answer) deltas() []holdfast.Delta {
	var out []holdfast.Delta
	for _, w := range words(a.reasoning) {
		out = append(out, holdfast.Delta{Reasoning: w})
	}
	for _, w := range words(a.text) {
		out = append(out, holdfast.Delta{Text: w})
	}
	for _, p := range a.media {
		out = append(out, holdfast.Delta{Media: p})
	}
	pieces := make([][]string, len(a.calls))
	longest := 0
	for i, c := range a.calls {
		out = append(out, holdfast.Delta{Call: &holdfast.CallDelta{Index: i, ID: fmt.Sprintf("call_%d", i),
			Name: c.name}})
		pieces[i] = split(c.args)
		longest = max(longest, len(pieces[i]))
	}
	for n := range longest {
		for i := range a.calls {
			if n < len(pieces[i]) {
				out = append(out, holdfast.Delta{Call: &holdfast.CallDelta{Index: i, Arguments: pieces[i][n]}})
			}
		}
	}
	return out
}

// words splits a text after each space.
func words(text string) []string {
	if text == "" {
		return nil
	}
	return strings.SplitAfter(text, " ")
}

// split splits arguments into pieces of a few bytes, between characters.
func split(args string) []string {
	const size = 16
	var out []string
	for len(args) > size {
		n := size
		for !utf8.RuneStart(args[n]) {
			n--
		}
		out = append(out, args[:n])
		args = args[n:]
	}
	return append(out, args)
}

// usage counts one token per word.
func (a answer) usage(req *holdfast.ModelRequest) *holdfast.Usage {
	var input int64
	for _, text := range req.Instructions {
		input += count(text)
	}
	for i := range req.Messages {
		input += count(req.Messages[i].PlainText())
		for _, c := range req.Messages[i].Calls {
			input += count(c.Name) + count(string(c.Arguments))
		}
	}
	reasoning := count(a.reasoning)
	output := reasoning + count(a.text)
	for _, c := range a.calls {
		output += count(c.name) + count(c.args)
	}
	total := input + output
	return &holdfast.Usage{
		Provider:        "holdfast",
		Model:           "demo",
		InputTokens:     &input,
		OutputTokens:    &output,
		TotalTokens:     &total,
		ReasoningTokens: &reasoning,
	}
}

func count(text string) int64 { return int64(len(strings.Fields(text))) }
