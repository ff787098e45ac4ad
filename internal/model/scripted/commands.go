package scripted

import (
	"regexp"
	"strconv"
	"strings"
)

// Help lists what the demo model understands.
const Help = `I am the demo model: scripted, with no key and no network. You can say:

- help: this list
- think QUESTION: reasons first, then answers
- plan N steps: N iterations with parallel tools and a plan in the shared state
- carry out N items: a tool that shows how far it has come
- parallel N: N tool calls at once
- wait N: a tool that takes N seconds
- ask me QUESTION: a tool that waits for your answer
- ask me to choose A, B, C: the same, with choices
- time, or time in Europe/Berlin: the clock tool
- calculate 2 * (3 + 4): the calculator tool
- lookup WORD: the glossary of Holdfast's words
- charge N: charges the demo card N times, once per iteration (with a journal)
- use TOOL {"some": "arguments"} and OTHER {}: calls any tools, your own too
- tools: the tools I was given
- context: what the frontend and the agent told me
- paint: an image
- misfit: an answer without the form that it must have, if the agent's answers have one
- slow N, long N: N words with long pauses, or with none
- bad args: calls a tool with wrong arguments, then corrects them
- flaky: fails, breaks off, and succeeds at the third try
- fail: fails for good
- length: is cut off by its length limit in the middle of a tool call

To see what Holdfast is for, say "plan 20 steps" and kill the server in the middle.`

// command is something that the model understands.
type command struct {
	words  *regexp.Regexp
	answer func(s situation, match []string) answer
}

// when is a command whose words the whole message must match.
func when(words string, f func(situation, []string) answer) command {
	return command{regexp.MustCompile(`(?is)^` + words + `[.!?\s]*$`), f}
}

// commands returns what the model understands. The first one that matches counts.
func commands() []command {
	return append([]command{
		when(`help`, func(situation, []string) answer { return say("%s", Help) }),
		when(`think\b[:,]?\s*(.*?)`, think),
		when(`plan(?:\s+(\d+))?(?:\s+steps?)?(?:,?\s+please)?`, plan),
		when(`carry out(?:\s+(\d+))?(?:\s+items?)?`, carryOut),
		when(`parallel(?:\s+(\d+))?`, parallel),
		when(`wait\s+(?:for\s+)?(\d+(?:\.\d+)?)(?:\s*s(?:econds?)?)?`, wait),
		when(`ask me to choose\b[:,]?\s*(.*?)`, askToChoose),
		when(`ask(?: me)?\b[:,]?\s*(.*)`, ask),
		when(`(?:what time is it|what(?:'s| is) the time|time)(?:\s+in\s+(\S+?))?`, tellTime),
		when(`(?:calculate|compute|sum)\b[:,]?\s*(.+?)`, calculate),
		when(`what(?:'s| is)\s+([-+*/^%().\d\s]*\d[-+*/^%().\d\s]*)`, calculate),
		when(`look\s?up\s+(.+?)`, lookup),
		when(`charge(?:\s+(\d+))?(?:\s+times?)?`, charge),
		when(`use\s+(.+?)`, use),
		when(`tools`, listTools),
		when(`context`, tellContext),
		when(`paint\b.*?`, paint),
		when(`misfit`, misfit),
		when(`slow(?:\s+(\d+))?(?:\s+words)?`, slow),
		when(`long(?:\s+(\d+))?(?:\s+words)?`, long),
		when(`bad arg(?:ument)?s`, badArgs),
		when(`flaky`, flaky),
		when(`fail`, fail),
		when(`length`, length),
	}, dojo()...)
}

// number reads a count; it returns the fallback for text that is not one.
func number(text string, fallback, most int) int {
	n, err := strconv.Atoi(text)
	switch {
	case text == "":
		return fallback
	case err != nil, n > most: // text is only digits here, so there are too many of them
		return most
	}
	return max(n, 1)
}

// list reads "a, b or c".
func list(text string) []string {
	var out []string
	for item := range strings.SplitSeq(strings.NewReplacer(" or ", ",", " and ", ",").Replace(text), ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}
