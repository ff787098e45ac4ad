package settings

import (
	"fmt"
	"strings"
)

// The help about settings.

// helpColumns is how wide the help is.
const helpColumns = 80

// Often returns the help for the settings that most people need.
func Often() string {
	var b strings.Builder
	for _, row := range defaults(func(string) string { return "" }).all() {
		if row.often {
			row.help(&b)
		}
	}
	return b.String()
}

// Help returns the help for all settings, by group.
func Help() string {
	var b strings.Builder
	b.WriteString(wrapped("", "Each setting is a flag and a variable of the environment. Those of the groups "+
		"durability and limits may also stand in the agents file, under settings. A flag takes precedence over a "+
		"variable, and a variable over the file.") + "\n")
	for _, g := range defaults(func(string) string { return "" }).groups {
		fmt.Fprintf(&b, "\n%s: %s\n\n", g.name, g.text)
		for _, row := range g.settings {
			row.help(&b)
		}
	}
	b.WriteString("\nvariables only: secrets, and where models are\n\n")
	for _, v := range variables {
		fmt.Fprintf(&b, "  %s\n%s\n", v.name, wrapped("        ", plain(v.text)))
	}
	return b.String()
}

// help writes how the setting is written, its default, and what it is for.
func (s *Setting) help(b *strings.Builder) {
	name, text := s.shownName(), plain(s.text)
	if s.noFlag {
		text += " (" + s.variable() + ")"
	}
	if value := s.into.show(); value != "" && value != "false" {
		name += " (default " + value + ")"
	}
	fmt.Fprintf(b, "  %s\n%s\n", name, wrapped("        ", text))
}

// wrapped returns a text in lines that begin with indent.
func wrapped(indent, text string) string {
	var lines []string
	line := indent
	for word := range strings.FieldsSeq(text) {
		if line != indent && len(line)+1+len(word) > helpColumns {
			lines = append(lines, line)
			line = indent
		}
		if line != indent {
			line += " "
		}
		line += word
	}
	return strings.Join(append(lines, line), "\n")
}
