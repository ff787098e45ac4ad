// Package config reads the YAML file that describes agents. It is strict: whatever it
// does not know is a mistake, and all mistakes are reported at once, each with its line
// and column.
//
// It knows nothing about tools, models and HTTP. The caller says in [Known] what
// exists; the content of the file is returned as plain values.
package config

import (
	"encoding/json"

	"github.com/holdfast-agents/holdfast"
)

// Known is what the file may refer to.
type Known struct {
	// Tools are the names of the built-in tools.
	Tools []string
	// Models are names like "demo", and prefixes that end in a slash, like "openai/",
	// which any name may follow.
	Models []string
	// Middleware are the kinds of middleware. Middleware is made while the file is read,
	// so that a mistake in its options is reported with its place.
	Middleware []holdfast.MiddlewareKind
	// Priced are the names of the kinds whose option prices defaults to the file's
	// prices.
	Priced []string
	// Declared looks at a declaration without opening anything, and returns the names of the
	// tools that it makes. Its error is one of the declaration's; see [Declaration.Located].
	Declared func(*Declaration) ([]string, error)
	// Settings are the keys that the file may have under settings, and what is wrong with a
	// value; it says what to write instead.
	Settings map[string]func(value string) error
	// Price returns what is wrong with one of the file's prices, a JSON object; nil
	// accepts any.
	Price func(price json.RawMessage) error
}

// File is a configuration without mistakes.
type File struct {
	// Name is the file's name as it was passed to [Load] or [Parse].
	Name string
	// Agents has at least one; the first is the default.
	Agents []Agent
	// Quotas are the limits of tenants and users, as a JSON object; nil if there are none.
	Quotas json.RawMessage
	// Declared is what tools come from besides those that are known: MCP servers first.
	Declared []*Declaration
	Prices   map[string]any // what models cost, by name; each has passed Known.Price
	// Settings are those that the file has, by their keys; each has passed Known.Settings.
	Settings map[string]string
	// Sums are to compare the file with an earlier reading of it.
	Sums Sums
}

// Agent is one entry of agents. A member that is not in the file is zero: the caller
// supplies the defaults.
type Agent struct {
	// Agent has what the file says of it, without models and tools. Its instructions are the
	// text itself, even if it comes from another file.
	holdfast.Agent
	// Line is the line of the file where the agent starts, from 1.
	Line int
	// Models are those that are asked, the first first; there is at least one.
	Models []Model
	// Remote is where the agent runs, if that is elsewhere; nil for most.
	Remote *Declaration
	// InstructionsFile is the path in instructionsFile, made absolute or relative to
	// the working directory; empty if there is none.
	InstructionsFile string
	// ToolNames are the agent's tools, without those of MCP servers.
	ToolNames []string
	// ServerTools are its tools of MCP servers.
	ServerTools []ServerTools
	// Options are what each middleware was made with, as JSON.
	Options []json.RawMessage
	// Limits are a JSON object; nil if there are none.
	Limits json.RawMessage

	file  string
	start place
	at    map[string]place // of the keys
}

// ServerTools are tools of an MCP server that an agent lists.
type ServerTools struct {
	Server string
	// Patterns are names of tools, in which * stands for any characters.
	Patterns []string
}

// Errorf makes a mistake that only the caller can find. It is reported at the agent's key or, if that is missing,
// at the start of the agent.
func (a Agent) Errorf(key, format string, args ...any) error {
	at, ok := a.at[key]
	if !ok {
		at = a.start
	}
	return &Error{File: a.file, Mistakes: []Mistake{mistakeAt(at, format, args...)}}
}
