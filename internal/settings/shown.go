package settings

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast/server"
)

// The settings as operators see them: each with its value, and where that comes from.

// variable is a setting that is a variable only.
type variable struct {
	name, text string
	secret     bool // it is shown whether it is set, and nothing of it
}

// variables are secrets, because arguments are visible to everyone on the machine, and where
// models are.
var variables = []variable{
	{"HOLDFAST_API_KEYS", "the [API keys](#who-may-call), or `@` and a file of them", true},
	{"HOLDFAST_OPERATOR_TOKEN", "what [operators](security.md#operators) of a server without keys show; by default a " +
		"random one, which the banner prints", true},
	{"OPENAI_API_KEY", "the key for OpenAI's models", true},
	{"ANTHROPIC_API_KEY", "the key for Anthropic's models", true},
	{"GEMINI_API_KEY", "the key for Google's models", true},
	{"GOOGLE_API_KEY", "another name of `GEMINI_API_KEY`", true},
	{"OPENAI_BASE_URL", "where OpenAI's models are, or those of a server with the same API", false},
	{"ANTHROPIC_BASE_URL", "where Anthropic's models are", false},
	{"GEMINI_BASE_URL", "where Google's models are", false},
}

// shownSecret stands for a secret that is set.
const shownSecret = "[secret]"

// Shown returns all settings, in the order of their names. file is the agents file that was
// read, if there is one: also one that is there without having been named.
func (s *Settings) Shown(file string) []server.Setting {
	list := []server.Setting{}
	for _, row := range s.all() {
		value := row.into.show()
		if row.name == "config" {
			value = cmp.Or(file, value)
		}
		list = append(list, server.Setting{
			Name:   row.shownName(),
			Value:  withoutSecret(value),
			Source: row.source,
			Text:   plain(row.text),
		})
	}
	slices.SortFunc(list, func(a, b server.Setting) int { return strings.Compare(a.Name, b.Name) })
	for _, v := range variables {
		value, source := s.getenv(v.name), "env"
		switch {
		case value == "" && !v.secret:
			continue
		case value == "":
			source = "default"
		case v.secret:
			value = shownSecret
		}
		list = append(list, server.Setting{Name: v.name, Value: withoutSecret(value), Source: source,
			Text: plain(v.text)})
	}
	return list
}

// shownName is how a setting is written.
func (s *Setting) shownName() string {
	if s.noFlag {
		return "settings." + s.key()
	}
	return "--" + s.name
}

// links are those of Markdown.
var links = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// plain returns a sentence without Markdown.
func plain(text string) string {
	return strings.ReplaceAll(links.ReplaceAllString(text, "$1"), "`", "")
}

// inURL matches what lets somebody in at a URL: between the scheme and the last @.
var inURL = regexp.MustCompile(`(\w://)\S*@`)

// withoutSecret returns a value without the passwords of URLs: before the host, and in the
// query.
func withoutSecret(value string) string {
	value = inURL.ReplaceAllString(value, "${1}"+shownSecret+"@")
	if before, _, found := strings.Cut(value, "?"); found && strings.Contains(before, "://") {
		return before + "?" + shownSecret // some of it may be one, and nobody needs the rest
	}
	return value
}
