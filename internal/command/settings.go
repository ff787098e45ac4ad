package command

import (
	"flag"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast/server"
)

// What operators are shown of the settings: each with its value, and where that comes from.

// secretVariables are settings that are variables only, because they are secrets. Whether one
// is set is shown, and nothing of it.
var secretVariables = []struct{ name, text string }{
	{"HOLDFAST_API_KEYS", "the API keys, or a file of them"},
	{"OPENAI_API_KEY", "the key for OpenAI's models"},
	{"ANTHROPIC_API_KEY", "the key for Anthropic's models"},
	{"GEMINI_API_KEY", "the key for Google's models"},
	{"GOOGLE_API_KEY", "another name of GEMINI_API_KEY"},
}

// urlVariables are variables that say where models are.
var urlVariables = []string{"OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GEMINI_BASE_URL"}

// shownSecret stands for a secret that is set.
const shownSecret = "[secret]"

// settings returns all settings, in the order of their names.
func (o *options) settings() []server.Setting {
	sources := o.sources()
	list := []server.Setting{}
	o.flagSet.VisitAll(func(f *flag.Flag) {
		if f.Name == "version" {
			return
		}
		source := sources[f.Name]
		if source == "" {
			source = "default"
		}
		text, _, _ := strings.Cut(f.Usage, " ("+variable(f.Name)+")")
		list = append(
			list,
			server.Setting{Name: "--" + f.Name, Value: withoutSecret(f.Value.String()), Source: source, Text: text},
		)
	})
	if o.agentsFile != "" {
		i := slices.IndexFunc(list, func(s server.Setting) bool { return s.Name == "--config" })
		list[i].Value = o.agentsFile // also one that is there without having been named
	}
	for _, v := range secretVariables {
		s := server.Setting{Name: v.name, Source: "default", Text: v.text}
		if o.getenv(v.name) != "" {
			s.Value, s.Source = shownSecret, "env"
		}
		list = append(list, s)
	}
	for _, name := range urlVariables {
		if v := o.getenv(name); v != "" {
			list = append(
				list,
				server.Setting{
					Name:   name,
					Value:  withoutSecret(v),
					Source: "env",
					Text:   "where the provider's models are",
				},
			)
		}
	}
	return list
}

// sources returns where the settings that are not defaults come from, by name.
func (o *options) sources() map[string]string {
	sources := map[string]string{}
	o.flagSet.VisitAll(func(f *flag.Flag) {
		if o.getenv(variable(f.Name)) != "" {
			sources[f.Name] = "env"
		}
	})
	given := (&options{}).flags(io.Discard)
	if given.Parse(o.args) == nil {
		given.Visit(func(f *flag.Flag) { sources[f.Name] = "flag" })
	}
	return sources
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
