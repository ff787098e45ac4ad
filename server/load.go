package server

// Loading an agents file: how the names in it (tools, models, kinds of middleware)
// become agents, with the parts that come with Holdfast and those of the program.

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/internal/config"
	"github.com/holdfast-agents/holdfast/internal/model/scripted"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/internal/tools"
	"github.com/holdfast-agents/holdfast/middleware/budget"
	"github.com/holdfast-agents/holdfast/middleware/kinds"
	"github.com/holdfast-agents/holdfast/model/anthropic"
	"github.com/holdfast-agents/holdfast/model/gemini"
	"github.com/holdfast-agents/holdfast/model/openai"
	"github.com/holdfast-agents/holdfast/model/responses"
)

// Parts are what an agents file may name besides what comes with Holdfast. A part
// replaces a built-in one of the same name.
type Parts struct {
	// Tools are tools that an agent may list.
	Tools []holdfast.Tool
	// Models make models. The key is the model's name in the file, such as "acme", or a
	// prefix that ends in a slash: "acme/" makes all models whose names start with it.
	Models map[string]func(ModelSpec) (holdfast.Model, error)
	// Middleware are further kinds of middleware.
	Middleware []holdfast.MiddlewareKind
	// DefaultModel is the name of the model for agents that name none; the default is
	// what [DefaultModel] returns.
	DefaultModel string
	// Getenv reads the environment, which holds the keys; default os.Getenv.
	Getenv func(string) string
	// DemoDelay is the demo model's pause between two words; if it is not 0, the demo's
	// tools take some time too.
	DemoDelay time.Duration
	// DemoJournal, if set, gets a line for each model and tool call of the demo, and
	// adds the tool charge_card.
	DemoJournal io.Writer
}

// ModelSpec is what a file says about an agent's model.
type ModelSpec struct {
	// Name is the whole name, such as "acme/large".
	Name string
	// BaseURL is where the model is served; empty if the file has none.
	BaseURL string
	// Headers are further headers of each request to the model. Their values may be
	// secrets, so they belong neither in logs nor in errors.
	Headers map[string]string
	// APIKeyEnv is the name of the environment variable with the key; empty if the file
	// has none.
	APIKeyEnv string
	// Proxy is the URL of the proxy for the requests, or "direct" for none; empty if the
	// file has none. It may have a password in it.
	Proxy string
	// Params are the provider's parameters; most numbers are a json.Number.
	Params map[string]any
}

// DefaultModel returns the model of agents that name none: openai/gpt-5-mini if there
// is a key for it, or else anthropic/claude-sonnet-4-5, or else the demo.
func DefaultModel(getenv func(string) string) string {
	if getenv("OPENAI_API_KEY") != "" {
		return "openai/gpt-5-mini"
	}
	if getenv("ANTHROPIC_API_KEY") != "" {
		return "anthropic/claude-sonnet-4-5"
	}
	return demoModel
}

// LoadAgents reads an agents file, the same that the holdfast program reads, for a
// program with parts of its own. It returns the agents, and the limits for
// [Config].Limits. Without a path there is one agent, with the default model and the
// tools that come with Holdfast. The error has a line for each mistake, with its place
// in the file; if there is no file, it wraps fs.ErrNotExist.
func LoadAgents(path string, parts Parts) ([]holdfast.Agent, map[string]Limits, error) {
	parts = parts.withDefaults()
	file, agents, err := parts.read(path)
	if err != nil {
		return nil, nil, err
	}
	var mistakes []error
	limits := make(map[string]Limits, len(agents))
	for i, a := range file.Agents {
		if agents[i].Model, err = parts.model(a); err != nil {
			mistakes = append(mistakes, err)
		}
		limits[a.Name] = Limits(a.Limits)
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, nil, err
	}
	return agents, limits, nil
}

// ValidateAgents checks a file as [LoadAgents] does, but makes no models, since those
// may need keys. It returns the agents without models, and the models' names in the
// file; "" is the default model.
func ValidateAgents(path string, parts Parts) (agents []holdfast.Agent, models []string, err error) {
	file, agents, err := parts.withDefaults().read(path)
	if err != nil {
		return nil, nil, err
	}
	for _, a := range file.Agents {
		models = append(models, a.Model)
	}
	return agents, models, nil
}

// The model that needs no key, and its agent.
const (
	demoModel = "demo"
	demoAgent = "demo"
)

func (p Parts) withDefaults() Parts {
	if p.Getenv == nil {
		p.Getenv = os.Getenv
	}
	p.DefaultModel = cmp.Or(p.DefaultModel, DefaultModel(p.Getenv))
	p.Middleware = slices.Concat(p.Middleware, kinds.All())
	models := map[string]func(ModelSpec) (holdfast.Model, error){demoModel: p.demo, "openai/": p.openAI, "anthropic/": p.anthropic, "responses/": p.responses, "gemini/": p.gemini}
	maps.Copy(models, p.Models)
	p.Models = models
	return p
}

// read reads the file and makes everything but the models.
func (p Parts) read(path string) (*config.File, []holdfast.Agent, error) {
	file := &config.File{Agents: []config.Agent{p.onlyAgent()}}
	if path != "" {
		var err error
		if file, err = config.Load(path, p.known()); err != nil {
			return nil, nil, err
		}
	}
	var mistakes []error
	agents := make([]holdfast.Agent, len(file.Agents))
	for i, a := range file.Agents {
		agents[i] = holdfast.Agent{Name: a.Name, Description: a.Description, Instructions: a.Instructions,
			Tools: p.toolsOf(a), Middleware: a.Middleware, Policy: a.Policy, Client: a.Client, HideToolErrors: a.HideToolErrors, Approvals: access.Role(a.Approvals)}
		if _, err := thread.Schemas(agents[i : i+1]); err != nil {
			mistakes = append(mistakes, a.Errorf("middleware", "%v", err))
		}
	}
	return file, agents, errors.Join(mistakes...)
}

// onlyAgent returns the agent of a server without a file.
func (p Parts) onlyAgent() config.Agent {
	a := config.Agent{Name: demoAgent, Description: "A scripted agent that needs no key. Say help.", Model: p.DefaultModel}
	if a.Model != demoModel {
		a.Name, a.Description = "assistant", "An assistant on "+a.Model+", with the tools that come with the server."
	}
	for _, t := range p.builtin(a.Model) {
		// Outside the demo nobody would finish its calls.
		if spec := t.Spec(); spec.Outside == nil || a.Model == demoModel {
			a.Tools = append(a.Tools, spec.Name)
		}
	}
	return a
}

// known returns what the file may refer to.
func (p Parts) known() config.Known {
	k := config.Known{
		Models: slices.Sorted(maps.Keys(p.Models)), Middleware: p.Middleware, Priced: []string{"budget"}, Price: checkPrice,
	}
	for _, t := range p.tools(demoModel) {
		k.Tools = append(k.Tools, t.Spec().Name)
	}
	return k
}

// checkPrice returns an error that says what is wrong with a price.
func checkPrice(raw json.RawMessage) error {
	var price budget.Price
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(&price)
}

// tools returns the tools that an agent with this model may list.
func (p Parts) tools(model string) []holdfast.Tool { return slices.Concat(p.Tools, p.builtin(model)) }

// builtin returns the tools that come with Holdfast. They pause only in the demo,
// where people watch.
func (p Parts) builtin(model string) []holdfast.Tool {
	pace := time.Duration(0)
	if model == demoModel {
		pace = p.DemoDelay
	}
	return tools.Builtin(time.Now, pace, p.DemoJournal)
}

// toolsOf returns the tools that an agent lists, in the order of its list.
func (p Parts) toolsOf(a config.Agent) []holdfast.Tool {
	all := p.tools(cmp.Or(a.Model, p.DefaultModel))
	var chosen []holdfast.Tool
	for _, name := range a.Tools {
		if i := slices.IndexFunc(all, func(t holdfast.Tool) bool { return t.Spec().Name == name }); i >= 0 {
			chosen = append(chosen, all[i])
		}
	}
	return chosen
}

// model makes an agent's model. An error names the line in the file.
func (p Parts) model(a config.Agent) (holdfast.Model, error) {
	a, err := a.WithEnv(p.Getenv)
	if err != nil {
		return nil, err
	}
	spec := ModelSpec{Name: cmp.Or(a.Model, p.DefaultModel), BaseURL: a.BaseURL, Headers: a.Headers, Proxy: a.Proxy, APIKeyEnv: a.APIKeyEnv, Params: a.Params}
	m, err := p.newModel(spec)
	switch {
	case err == nil:
		return m, nil
	case a.Line == 0: // there is no file
		return nil, err
	case a.APIKeyEnv != "":
		return nil, a.Errorf("apiKeyEnv", "%v", err)
	}
	return nil, a.Errorf("model", "%v", err)
}

func (p Parts) newModel(spec ModelSpec) (holdfast.Model, error) {
	if f, ok := p.Models[spec.Name]; ok && !strings.HasSuffix(spec.Name, "/") {
		return f(spec)
	}
	longest := ""
	for prefix := range p.Models {
		if strings.HasSuffix(prefix, "/") && len(prefix) < len(spec.Name) && strings.HasPrefix(spec.Name, prefix) && len(prefix) > len(longest) {
			longest = prefix
		}
	}
	if longest == "" {
		return nil, fmt.Errorf("the model %s is not known", spec.Name)
	}
	return p.Models[longest](spec)
}

func (p Parts) demo(ModelSpec) (holdfast.Model, error) {
	return scripted.New(scripted.Options{Delay: p.DemoDelay, Journal: p.DemoJournal}), nil
}

// openAI makes a model that is served through OpenAI's chat completions API.
func (p Parts) openAI(spec ModelSpec) (holdfast.Model, error) {
	return openai.New(openai.Options{
		Model: strings.TrimPrefix(spec.Name, "openai/"), BaseURL: spec.BaseURL, KeyEnv: spec.APIKeyEnv, Getenv: p.Getenv,
		Headers: spec.Headers, Params: spec.Params, Proxy: spec.Proxy,
	})
}

// anthropic makes a model of Anthropic's.
func (p Parts) anthropic(spec ModelSpec) (holdfast.Model, error) {
	return anthropic.New(anthropic.Options{
		Model: strings.TrimPrefix(spec.Name, "anthropic/"), BaseURL: spec.BaseURL, KeyEnv: spec.APIKeyEnv, Getenv: p.Getenv,
		Headers: spec.Headers, Params: spec.Params, Proxy: spec.Proxy,
	})
}

// responses makes a model that is served through OpenAI's Responses API.
func (p Parts) responses(spec ModelSpec) (holdfast.Model, error) {
	return responses.New(responses.Options{
		Model: strings.TrimPrefix(spec.Name, "responses/"), BaseURL: spec.BaseURL, KeyEnv: spec.APIKeyEnv, Getenv: p.Getenv,
		Headers: spec.Headers, Params: spec.Params, Proxy: spec.Proxy,
	})
}

// gemini makes a model of Google's.
func (p Parts) gemini(spec ModelSpec) (holdfast.Model, error) {
	return gemini.New(gemini.Options{
		Model: strings.TrimPrefix(spec.Name, "gemini/"), BaseURL: spec.BaseURL, KeyEnv: spec.APIKeyEnv, Getenv: p.Getenv,
		Headers: spec.Headers, Params: spec.Params, Proxy: spec.Proxy,
	})
}
