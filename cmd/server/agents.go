package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/auth"
	"github.com/holdfast-agents/holdfast/internal/config"
	"github.com/holdfast-agents/holdfast/internal/model/openai"
	"github.com/holdfast-agents/holdfast/internal/model/scripted"
	"github.com/holdfast-agents/holdfast/internal/tools"
	"github.com/holdfast-agents/holdfast/server"
)

// configured returns the file's agents and their limits. Without a file there
// is one agent, unless the file was asked for by name.
func (o *options) configured(journal io.Writer) ([]holdfast.Agent, map[string]server.Limits, error) {
	path := orDefault(o.configFile, defaultConfig)
	f, err := config.Load(path, known(journal))
	switch {
	case errors.Is(err, fs.ErrNotExist) && o.configFile == "":
		a, err := o.onlyAgent(journal)
		return []holdfast.Agent{a}, nil, err
	case err != nil:
		return nil, nil, err
	}
	var mistakes []error
	agents := make([]holdfast.Agent, len(f.Agents))
	limits := map[string]server.Limits{}
	for i, a := range f.Agents {
		model, err := o.modelOf(a, journal)
		if err != nil {
			mistakes = append(mistakes, err)
		}
		agents[i] = holdfast.Agent{Name: a.Name, Description: a.Description, Instructions: a.Instructions,
			Model: model, Tools: o.toolsOf(a, journal), Policy: a.Policy}
		limits[a.Name] = server.Limits(a.Limits)
	}
	return agents, limits, errors.Join(mistakes...)
}

// onlyAgent is the agent of a server without a file: the demo, or the default
// model with the tools that come with the server.
func (o *options) onlyAgent(journal io.Writer) (holdfast.Agent, error) {
	a := holdfast.Agent{
		Name: "demo", Description: "A scripted agent that needs no key. Say help.",
		Tools: o.builtin(o.model, journal),
	}
	if o.model != "demo" {
		a.Name, a.Description = "assistant", "An assistant on "+o.model+", with the tools that come with the server."
	}
	var err error
	a.Model, err = o.newModel(o.model, config.Agent{}, journal)
	return a, err
}

// modelOf makes an agent's model. A mistake points to its line in the file.
func (o *options) modelOf(a config.Agent, journal io.Writer) (holdfast.Model, error) {
	m, err := o.newModel(orDefault(a.Model, o.model), a, journal)
	if err != nil {
		key := "model"
		if a.APIKeyEnv != "" {
			key = "apiKeyEnv"
		}
		return nil, a.Errorf(key, "%v", err)
	}
	return m, nil
}

// newModel makes a model by its name, with what the agent says of it.
func (o *options) newModel(name string, a config.Agent, journal io.Writer) (holdfast.Model, error) {
	if name == "demo" {
		return scripted.New(scripted.Options{Delay: o.demoDelay, Journal: journal}), nil
	}
	keyName := orDefault(a.APIKeyEnv, "OPENAI_API_KEY")
	base := orDefault(a.BaseURL, o.getenv("OPENAI_BASE_URL"))
	key := o.getenv(keyName)
	if key == "" && (base == "" || a.APIKeyEnv != "") {
		return nil, fmt.Errorf("the model %s needs a key: set %s, or name a server that needs none with OPENAI_BASE_URL", name, keyName)
	}
	return openai.New(openai.Options{BaseURL: base, APIKey: key, Model: strings.TrimPrefix(name, "openai/"), Params: a.Params})
}

// builtin returns the tools that come with the server. They take their time only
// for the demo, where people watch.
func (o *options) builtin(model string, journal io.Writer) []holdfast.Tool {
	pace := time.Duration(0)
	if model == "demo" {
		pace = o.demoDelay
	}
	return tools.Builtin(time.Now, pace, journal)
}

// toolsOf returns the tools that an agent lists, in its order.
func (o *options) toolsOf(a config.Agent, journal io.Writer) []holdfast.Tool {
	builtin := o.builtin(orDefault(a.Model, o.model), journal)
	var chosen []holdfast.Tool
	for _, name := range a.Tools {
		if i := slices.IndexFunc(builtin, func(t holdfast.Tool) bool { return t.Spec().Name == name }); i >= 0 {
			chosen = append(chosen, builtin[i])
		}
	}
	return chosen
}

// authenticate is nil without keys: then the server listens on loopback only.
func (o *options) authenticate() (func(*http.Request) (holdfast.Principal, error), error) {
	list := o.getenv("HOLDFAST_API_KEYS")
	if list == "" {
		return nil, nil
	}
	keys, err := auth.Parse(list, os.ReadFile)
	if err != nil {
		return nil, fmt.Errorf("HOLDFAST_API_KEYS: %w", err)
	}
	return keys.Authenticate, nil
}
