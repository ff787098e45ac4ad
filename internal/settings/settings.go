// Package settings is the table of the program's settings. Its flags, the variables of its
// environment, the keys of its file, its help, what operators are shown, and the pages about
// settings all come from this table.
package settings

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast/jwtauth"
	"github.com/holdfast-agents/holdfast/server"
)

// Settings are what a program was started with.
type Settings struct {
	// Config has the settings of the server, and nothing else.
	Config server.Config
	// Tokens are for the verifier of an identity provider's tokens.
	Tokens jwtauth.Options
	// File is the agents file; empty for the default one.
	File string
	// LogFormat is text or json.
	LogFormat string
	// LogLevel is the lowest level that is logged.
	LogLevel slog.Level
	// DemoDelay is the demo model's pause between two words.
	DemoDelay time.Duration
	// DemoJournal is a file for the calls of the demo; empty for none.
	DemoJournal string
	// DemoKill lets the page kill the server.
	DemoKill bool
	// Version: the program only prints its version.
	Version bool

	groups []group
	getenv func(string) string
}

// Setting is one row of the table.
type Setting struct {
	name string
	def  string
	into target
	text string // a sentence in Markdown

	often  bool   // shown by the short help
	noFlag bool   // only a variable and a key of the file
	source string // where the value comes from, in the words of [server.Setting]
}

// group is a part of the table.
type group struct {
	name, text string
	inFile     bool // the file may have them
	settings   []*Setting
}

// row makes a setting: what it is called, how its default is written, what it sets, and what
// it is for. The sentence is Markdown, without a capital letter and without a full stop.
func row(name, def string, into target, text string) *Setting {
	return &Setting{name: name, def: def, into: into, text: text}
}

// oftenUsed has the short help show the setting.
func (s *Setting) oftenUsed() *Setting {
	s.often = true
	return s
}

// withoutFlag is for settings whose default suits nearly everybody. Their former flags say
// where they are.
func (s *Setting) withoutFlag() *Setting {
	s.noFlag = true
	return s
}

// variable returns the name of the setting in the environment.
func (s *Setting) variable() string {
	return "HOLDFAST_" + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
}

// key returns the name of the setting in the file.
func (s *Setting) key() string {
	words := strings.Split(s.name, "-")
	for i, word := range words[1:] {
		words[i+1] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

// set sets the setting.
func (s *Setting) set(value, source string) error {
	if err := s.into.set(value); err != nil {
		return err
	}
	s.source = source
	return nil
}

// defaults returns the settings of a program that nobody has told anything.
func defaults(getenv func(string) string) *Settings {
	s := &Settings{getenv: getenv}
	s.groups = s.table()
	for _, row := range s.all() {
		if err := row.set(row.def, "default"); err != nil {
			panic(fmt.Sprintf("the default of %s: %v", row.name, err))
		}
	}
	return s
}

// all returns the whole table.
func (s *Settings) all() []*Setting {
	var all []*Setting
	for _, g := range s.groups {
		all = append(all, g.settings...)
	}
	return all
}

// Parse reads the environment and the arguments of the program, which take precedence. The
// error is flag.ErrHelp if they ask for help.
func Parse(args []string, getenv func(string) string) (*Settings, error) {
	s := defaults(getenv)
	for _, row := range s.all() {
		v := getenv(row.variable())
		if v == "" {
			continue
		}
		if err := row.set(v, "env"); err != nil {
			return nil, fmt.Errorf("%s=%q cannot be used: %w", row.variable(), v, err)
		}
	}
	flags := flag.NewFlagSet("holdfast", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	var mistake error
	for _, row := range s.all() {
		flags.Var(given{row, &mistake}, row.name, "")
	}
	flags.BoolVar(&s.Version, "version", false, "")
	switch err := flags.Parse(args); {
	case mistake != nil:
		return nil, mistake
	case err != nil:
		return nil, err
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q: besides flags there are commands; see holdfast help",
			flags.Arg(0))
	}
	if s.Config.DefaultModel == "" {
		s.Config.DefaultModel = server.DefaultModel(getenv)
	}
	return s, nil
}

// given is a setting as a flag. The flag package reports a mistake in a form of its own, so
// mistake keeps it as this program says it.
type given struct {
	setting *Setting
	mistake *error
}

// String is for the flag package, which has nothing to print.
func (given) String() string { return "" }

// IsBoolFlag reports whether the flag may stand without a value.
func (g given) IsBoolFlag() bool { return g.setting != nil && g.setting.into.boolean }

// Set sets the setting.
func (g given) Set(v string) error {
	var err error
	if g.setting.noFlag {
		err = fmt.Errorf("--%s is not a flag: write \"settings: {%s: %s}\" in the agents file, or set %s=%s",
			g.setting.name, g.setting.key(), v, g.setting.variable(), v)
	} else if bad := g.setting.set(v, "flag"); bad != nil {
		err = fmt.Errorf("--%s=%s cannot be used: %w", g.setting.name, v, bad)
	}
	*g.mistake = err
	return err
}

// Checks are the keys that the agents file may have under settings, for [server.Parts].
func Checks() map[string]func(value string) error {
	checks := map[string]func(string) error{}
	for _, g := range defaults(func(string) string { return "" }).groups {
		for _, row := range g.settings {
			if g.inFile {
				checks[row.key()] = row.into.set
			}
		}
	}
	return checks
}

// Complete takes what the agents file says, by its keys, unless a flag or a variable has said
// it.
func (s *Settings) Complete(file map[string]string) error {
	for _, row := range s.all() {
		v, said := file[row.key()]
		if !said || row.source != "default" {
			continue
		}
		if err := row.set(v, "file"); err != nil {
			return fmt.Errorf("settings.%s: %w", row.key(), err)
		}
	}
	s.fitMediaBody()
	return nil
}

// fitMediaBody has the default of max-media-body leave room for two bodies in the bound for all,
// as the server wants it, so that a smaller bound for all needs nothing else to be set.
func (s *Settings) fitMediaBody() {
	for _, row := range s.all() {
		if row.name == "max-media-body" && row.source == "default" {
			s.Config.MaxMediaBody = min(s.Config.MaxMediaBody, s.Config.MaxBodies/2)
		}
	}
}

// Has reports whether there is a flag of this name.
func Has(name string) bool {
	return slices.ContainsFunc(defaults(func(string) string { return "" }).all(), func(s *Setting) bool {
		return s.name == name && !s.noFlag
	})
}
