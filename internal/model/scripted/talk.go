package scripted

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-agents/holdfast"
)

// The answers that need no tool.

func chat(s situation) answer {
	var media string
	if n := len(s.media); n > 0 {
		media = fmt.Sprintf(" (and %d attachments that I cannot look into)", n)
	}
	if s.user == "" {
		return say("Hello!%s I am the demo model. Say \"help\" to see what I can do.", media)
	}
	return say("You said: “%s”%s. I am only the demo model, so that is all I know about it. Say "+
		"\"help\" to see what I can do.", shorten(s.user), media)
}

func think(_ situation, match []string) answer {
	question := match[1]
	if question == "" {
		question = "nothing in particular"
	}
	a := say("I have thought about it: %s is worth thinking about, and a scripted model is not the one to do it.",
		shorten(question))
	a.reasoning = fmt.Sprintf("The user wants me to think about “%s”. I have no opinions, but I can show that "+
		"reasoning streams before the answer. First I look at the words. Then I count them: "+
		"there are %d. That will do.", shorten(question), count(question))
	return a
}

func listTools(s situation, _ []string) answer {
	if len(s.req.Tools) == 0 {
		return say("I was given no tools.")
	}
	var b strings.Builder
	for _, t := range s.req.Tools {
		fmt.Fprintf(&b, "\n- %s: %s", t.Name, shorten(t.Description))
	}
	return say("I was given %d tools:%s", len(s.req.Tools), b.String())
}

func tellContext(s situation, _ []string) answer {
	var b strings.Builder
	for _, text := range s.req.Instructions {
		fmt.Fprintf(&b, "\n- instructions: %s", shorten(text))
	}
	for _, c := range s.req.Context {
		fmt.Fprintf(&b, "\n- %s: %s", shorten(c.Description), shorten(c.Value))
	}
	if len(s.req.ForwardedProps) > 0 {
		fmt.Fprintf(&b, "\n- forwarded properties: %s", shorten(string(s.req.ForwardedProps)))
	}
	if b.Len() == 0 {
		return say("I was told nothing besides the conversation, which has %d messages.", len(s.req.Messages))
	}
	return say("The conversation has %d messages, and I was told:%s", len(s.req.Messages), b.String())
}

func slow(_ situation, match []string) answer {
	a := say("%s", numbered(number(match[1], 60, 20_000)))
	a.pace = 10
	return a
}

func long(_ situation, match []string) answer {
	a := say("%s", numbered(number(match[1], 2000, 100_000)))
	a.pace = 0
	return a
}

// numbered returns n words, so that a reader sees whether one is missing.
func numbered(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "word-%d ", i)
	}
	return strings.TrimSpace(b.String())
}

// errScripted is the cause of failures that the user asked for.
var errScripted = errors.New("the user asked for it")

func flaky(s situation, _ []string) answer {
	switch s.req.Attempt {
	case 0:
		a := say("This is the first try, and in the middle of it the connection")
		a.finish, a.fail = "", &holdfast.ModelError{
			Retryable: true,
			Public:    "The demo model lost its connection, as it was asked to.",
			Err:       errScripted,
		}
		return a
	case 1:
		a := say("This is the second try, and it breaks off without")
		a.finish = ""
		return a
	}
	return say("This is try number %d. The ones before it failed, and nothing of them is left in the conversation.",
		s.req.Attempt+1)
}

func fail(situation, []string) answer {
	a := say("This answer is going to fail right")
	a.finish, a.fail = "", &holdfast.ModelError{Public: "The demo model failed, as it was asked to.", Err: errScripted}
	return a
}
