package tools

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
)

type lookupArgs struct {
	Term string `json:"term" jsonschema:"a word of Holdfast, like checkpoint"`
}

// Lookup is the tool lookup: a glossary of Holdfast's terms.
func Lookup() holdfast.Tool {
	words := glossary()
	terms := strings.Join(slices.Sorted(maps.Keys(words)), ", ")
	return holdfast.NewTool("lookup", "Explains a word of Holdfast. It knows: "+terms+".",
		func(_ context.Context, args lookupArgs) (string, error) {
			term := strings.ToLower(strings.TrimSpace(args.Term))
			if text, ok := words[term]; ok {
				return text, nil
			}
			if text, ok := words[strings.TrimSuffix(term, "s")]; ok {
				return text, nil
			}
			return "", fmt.Errorf("the glossary has no %q; it has: %s", args.Term, terms)
		}, holdfast.WithEffect(holdfast.EffectPure))
}

func glossary() map[string]string {
	return map[string]string{
		"thread": "A conversation: a tree of messages with one head.",
		"run": "One execution on a thread, started by one POST. It ends in success, " +
			"interrupt, cancelled or error.",
		"iteration": "One model call plus the tools it asked for, counted from 0.",
		"record":    "One AG-UI event in a thread's log, numbered densely from 1.",
		"cursor": "The id of a record, number-tag. A reader that reconnects with it gets " +
			"exactly what is missing.",
		"head":   "Where a thread stands; it moves in every commit.",
		"commit": "One atomic step of a thread: records, messages, values and the head, all or nothing.",
		"checkpoint": "A head that is listed, taken between two iterations. A run can be " +
			"looked at and resumed there.",
		"pending write": "A finished tool result, saved before the checkpoint that will include it, so that no " +
			"finished tool runs again.",
		"intent": "A note saved before a tool call starts. An intent without a result is a call " +
			"whose outcome is in doubt.",
		"fence": "The right to write to a thread: an epoch and a nonce, compared inside every write.",
		"lease": "How long a silent process counts as alive. After it, another process takes over its runs.",
		"interrupt": "A question to a person. The run ends with it and waits without any " +
			"goroutine, socket or timer.",
		"effect": "The consequence of running a tool twice: pure and idempotent calls are run again " +
			"after a crash, once never.",
		"middleware": "Optional hooks around iterations, model calls and tool calls.",
		"ag-ui": "The protocol between agents and frontends that Holdfast speaks: typed events " +
			"over server-sent events.",
	}
}
