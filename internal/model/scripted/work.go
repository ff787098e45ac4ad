package scripted

// The answers that use tools.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/holdfast-agents/holdfast"
)

// needs says that a tool is missing.
func needs(tool string) answer {
	return say("I need the tool %s for this, and I was not given it. Say \"tools\" to see which ones I have.", tool)
}

// simple calls tools once, then reports their results.
func simple(s situation, before, after string, calls ...call) answer {
	for _, c := range calls {
		if s.missing(c.name) != "" {
			return needs(c.name)
		}
	}
	if s.steps == 0 {
		return say("%s", before).with(calls...)
	}
	return say("%s\n%s", after, summary(s.results))
}

func wait(s situation, match []string) answer {
	seconds, err := strconv.ParseFloat(match[1], 64)
	if err != nil {
		seconds = 1
	}
	return simple(s, "I wait.", "The wait is over:", callTool("wait", "seconds", seconds))
}

func carryOut(s situation, match []string) answer {
	items := make([]string, number(match[1], 4, 50))
	for i := range items {
		items[i] = fmt.Sprintf("Item %d", i+1)
	}
	return simple(s, "I work through the list.", "The work is done:",
		callTool("carry_out", "title", fmt.Sprintf("A list of %d items", len(items)), "items", items, "seconds", 0.5))
}

func tellTime(s situation, match []string) answer {
	c := callTool("current_time")
	if match[1] != "" {
		c = callTool("current_time", "timezone", match[1])
	}
	return simple(s, "I look at the clock.", "This is what the clock says:", c)
}

func calculate(s situation, match []string) answer {
	return simple(s, "I use the calculator.", "The calculator says:",
		callTool("calculate", "expression", strings.TrimSpace(match[1])))
}

func lookup(s situation, match []string) answer {
	return simple(s, "I look into the glossary.", "The glossary says:", callTool("lookup", "term", match[1]))
}

func ask(s situation, match []string) answer {
	question := "What is your favourite colour?"
	if match[1] != "" {
		question = match[1]
	}
	return asked(s, callTool("ask_person", "question", question))
}

func askToChoose(s situation, match []string) answer {
	choices := list(match[1])
	if len(choices) == 0 {
		choices = []string{"red", "green", "blue"}
	}
	return asked(s, callTool("ask_person", "question", "Which one do you choose?", "choices", choices))
}

func asked(s situation, c call) answer {
	switch {
	case s.missing(c.name) != "":
		return needs(c.name)
	case s.steps == 0:
		return say("I have a question.").with(c)
	case s.last().failed, s.last().text == "The person gave no answer.":
		return say("I got no answer to my question: %s", shorten(s.last().text))
	}
	return say("Thank you! You answered: “%s”.", shorten(s.last().text))
}

func parallel(s situation, match []string) answer {
	n := number(match[1], 5, 100)
	terms := terms()
	calls := make([]call, n)
	for i := range calls {
		if i%2 == 0 {
			calls[i] = callTool("wait", "seconds", 0.5+0.25*float64(i%4))
		} else {
			calls[i] = callTool("lookup", "term", terms[i%len(terms)])
		}
	}
	return simple(s, fmt.Sprintf("I make %d calls at once.", n),
		fmt.Sprintf("All %d calls have come back:", len(s.results)), calls...)
}

func charge(s situation, match []string) answer {
	n := number(match[1], 3, 1000)
	switch {
	case s.missing("charge_card") != "":
		return say("I need the tool charge_card for this. Start the server with --demo-journal=FILE to get it.")
	case s.steps < n:
		return say("Charge %d of %d.", s.steps+1, n).
			with(callTool("charge_card", "amount", s.steps+1, "currency", "EUR"))
	}
	return say("I made %d charges:\n%s", n, summary(s.results))
}

func badArgs(s situation, _ []string) answer {
	if s.missing("calculate") != "" {
		return needs("calculate")
	}
	switch s.steps {
	case 0:
		return say("I call the calculator with arguments that it does not know.").
			with(callTool("calculate", "formula", "6 * 7", "digits", "many"))
	case 1:
		return say("It told me what is wrong (%s), so I correct it.", shorten(s.last().text)).
			with(callTool("calculate", "expression", "6 * 7"))
	}
	return say("Corrected: 6 * 7 is %s.", shorten(s.last().text))
}

func length(s situation, _ []string) answer {
	switch {
	case s.missing("calculate") != "":
		return needs("calculate")
	case s.steps == 0:
		a := say("I have so much to say that I am cut off in the middle of").
			with(call{"calculate", `{"expression": "1 + 2 + 3 + `})
		a.finish = holdfast.FinishLength
		return a
	}
	return say("I was cut off by my length limit, and the call was not made:\n%s", summary(s.results))
}

// usePart matches the start of one call in "use a {…} and b {…}".
var usePart = regexp.MustCompile(`(?i)^\s*(?:and\s+|,\s*|use\s+)*([^\s{,]+)\s*`)

func use(s situation, match []string) answer {
	calls, err := parseUse(match[1])
	if err != nil {
		return say("I cannot read the arguments: %v. Say it like this: use calculate {\"expression\": \"1 + 1\"}", err)
	}
	names := make([]string, len(calls))
	for i, c := range calls {
		names[i] = c.name
	}
	return simple(s, fmt.Sprintf("I use %s.", strings.Join(names, " and ")), "Done:", calls...)
}

func parseUse(text string) ([]call, error) {
	var calls []call
	for rest := text; strings.TrimSpace(rest) != ""; {
		m := usePart.FindStringSubmatch(rest)
		if m == nil {
			return nil, fmt.Errorf("there is no tool's name before %s", shorten(rest))
		}
		c := call{name: m[1], args: "{}"}
		rest = rest[len(m[0]):]
		if strings.HasPrefix(rest, "{") {
			d := json.NewDecoder(strings.NewReader(rest))
			var raw json.RawMessage
			if err := d.Decode(&raw); err != nil {
				if errors.Is(err, io.ErrUnexpectedEOF) {
					return nil, errors.New("a } is missing")
				}
				return nil, err
			}
			c.args = string(raw)
			rest = rest[d.InputOffset():]
		}
		calls = append(calls, c)
	}
	return calls, nil
}
