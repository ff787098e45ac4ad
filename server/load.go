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
	"log/slog"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/httptool"
	"github.com/holdfast-agents/holdfast/internal/agents"
	"github.com/holdfast-agents/holdfast/internal/config"
	"github.com/holdfast-agents/holdfast/internal/declared"
	"github.com/holdfast-agents/holdfast/internal/model/scripted"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/internal/tools"
	"github.com/holdfast-agents/holdfast/middleware/budget"
	"github.com/holdfast-agents/holdfast/middleware/kinds"
	"github.com/holdfast-agents/holdfast/model"
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
	// DefaultModel is the name of the model for agents that name none, or several names
	// with commas between them: each is asked if the one before it fails. The default is
	// what [DefaultModel] returns.
	DefaultModel string
	// Getenv reads the environment, which holds the keys; default os.Getenv.
	Getenv func(string) string
	// Settings are the keys that the file may have under settings, for a program that has
	// settings of its own, with what checks a value: its error says what to write instead.
	Settings map[string]func(value string) error
	// Log is where the MCP servers report; default slog.Default.
	Log *slog.Logger
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
	// Timeout bounds one call, and IdleTimeout the time in which nothing comes from the
	// model; 0 if the file does not say. The server holds every model to them. One that has
	// a timeout of its own must not be stricter.
	Timeout, IdleTimeout time.Duration
}

// DefaultModel returns the model of agents that name none: the first of
// responses/gpt-6-luna, anthropic/claude-sonnet-5-5 and gemini/gemini-3.8-flash for which
// there is a key, or else the demo. If OPENAI_BASE_URL names another server than OpenAI's,
// the first of them is openai/gpt-5-mini: such servers have OpenAI's chat completions API, and
// often no other.
func DefaultModel(getenv func(string) string) string {
	openAI := "responses/gpt-6-luna"
	if base := getenv("OPENAI_BASE_URL"); base != "" && !isOpenAI(base) {
		openAI = "openai/gpt-5-mini"
	}
	for _, d := range []struct{ key, model string }{
		{"OPENAI_API_KEY", openAI}, {"ANTHROPIC_API_KEY", "anthropic/claude-sonnet-5-5"},
		{"GEMINI_API_KEY", "gemini/gemini-3.8-flash"},
	} {
		if getenv(d.key) != "" {
			return d.model
		}
	}
	return demoModel
}

// isOpenAI reports whether a base URL is OpenAI's own, of any region.
func isOpenAI(base string) bool {
	u, err := url.Parse(base)
	return err == nil && strings.HasSuffix("."+u.Hostname(), ".api.openai.com")
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
	if p.Log == nil {
		p.Log = slog.Default()
	}
	p.DefaultModel = cmp.Or(p.DefaultModel, DefaultModel(p.Getenv))
	p.Middleware = slices.Concat(p.Middleware, kinds.All())
	models := p.providers()
	models[demoModel] = p.demo
	maps.Copy(models, p.Models)
	p.Models = models
	return p
}

// read reads the file; declared gets the tools that it declares, which cannot be called.
func (p Parts) read(path string, declared map[string]holdfast.Tool) (*config.File, error) {
	if path == "" {
		return &config.File{Agents: []config.Agent{p.onlyAgent()}}, nil
	}
	return config.Load(path, p.known(declared))
}

// agents makes the agents of a file, without models and without the tools of MCP servers.
func (p Parts) agents(file *config.File, declared map[string]holdfast.Tool) ([]holdfast.Agent, error) {
	var mistakes []error
	agents := make([]holdfast.Agent, len(file.Agents))
	for i, a := range file.Agents {
		agents[i] = a.Agent
		agents[i].Tools, agents[i].Revision = p.toolsOf(a, declared), declaredRevision(&a)
		if a.Remote != nil {
			mistakes = append(mistakes, checkRemote(a, &agents[i]))
		}
		if _, err := thread.Schemas(agents[i : i+1]); err != nil {
			mistakes = append(mistakes, a.Errorf("middleware", "%v", err))
		}
		if err := validateTools(agents[i]); err != nil {
			mistakes = append(mistakes, a.Errorf("middleware", "%v", err))
		}
	}
	return agents, errors.Join(mistakes...)
}

// agentDeclaration is what an agents file says of an agent that the agent itself does not show. It has
// nothing in it that may be a secret, or that differs from place to place: no headers, no URLs.
type agentDeclaration struct {
	Models     []modelDeclaration  `json:"models"`
	Middleware []json.RawMessage   `json:"middleware,omitempty"` // the options
	Servers    map[string][]string `json:"servers,omitempty"`    // the patterns of tools, by the name of the MCP server
	Remote     *remoteDeclaration  `json:"remote,omitempty"`
}

type modelDeclaration struct {
	Params      map[string]any `json:"params,omitempty"`
	Timeout     time.Duration  `json:"timeout,omitempty"`
	IdleTimeout time.Duration  `json:"idleTimeout,omitempty"`
}

// declaredRevision returns what the file adds to an agent's revision.
func declaredRevision(a *config.Agent) string {
	d := agentDeclaration{Middleware: a.Options}
	for i := range a.Models {
		var m ModelSpec
		_ = a.Models[i].Decode(&m, nil) // what is wrong with it is found when it is made
		d.Models = append(d.Models, modelDeclaration{m.Params, m.Timeout, m.IdleTimeout})
	}
	if a.Remote != nil {
		d.Remote = remoteDeclared(a.Remote)
	}
	for _, s := range a.ServerTools {
		if d.Servers == nil {
			d.Servers = map[string][]string{}
		}
		d.Servers[s.Server] = append(d.Servers[s.Server], s.Patterns...)
	}
	return agents.Hash(d)
}

// defaults returns the names of the default models, of which there is at least one.
func (p Parts) defaults() []string {
	names := strings.Split(p.DefaultModel, ",")
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
	}
	return names
}

// onlyAgent returns the agent of a server without a file.
func (p Parts) onlyAgent() config.Agent {
	a := config.Agent{Models: []config.Model{{Declaration: &config.Declaration{}}}}
	a.Name, a.Description = demoAgent, "A scripted agent that needs no key. Say help."
	if p.DefaultModel != demoModel {
		a.Name, a.Description = "assistant",
			"An assistant on "+strings.Join(p.defaults(), " or ")+", with the tools that come with the server."
	}
	for _, t := range p.builtin(p.defaults()[0]) {
		// Outside the demo nobody would finish its calls.
		if spec := t.Spec(); spec.Outside == nil || p.DefaultModel == demoModel {
			a.ToolNames = append(a.ToolNames, spec.Name)
		}
	}
	return a
}

// known returns what the file may refer to. into gets the tools that it declares.
func (p Parts) known(into map[string]holdfast.Tool) config.Known {
	k := config.Known{
		Declared:   func(d *config.Declaration) ([]string, error) { return declared.Check(d, into) },
		Models:     slices.Sorted(maps.Keys(p.Models)),
		Middleware: p.Middleware,
		Priced:     []string{"budget"},
		Price:      checkPrice,
		Settings:   p.Settings,
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
func (p Parts) tools(model string) []holdfast.Tool {
	return slices.Concat(p.Tools, p.builtin(model), onlyListed())
}

// onlyListed returns the built-in tools that no agent has unless it lists them.
func onlyListed() []holdfast.Tool {
	all := []holdfast.Tool{tools.Scratchpad(), tools.UpdateState()}
	if fetch, err := httptool.Fetch(httptool.FetchOptions{}); err == nil { // without options nothing can be wrong
		all = append(all, fetch)
	}
	return all
}

// builtin returns the tools that come with Holdfast. They pause only in the demo,
// where people watch.
func (p Parts) builtin(model string) []holdfast.Tool {
	pace := time.Duration(0)
	if model == demoModel {
		pace = p.DemoDelay
	}
	return tools.Builtin(time.Now, pace, p.DemoJournal)
}

// toolsOf returns the tools that an agent lists, in the order of its list. Those that the
// file declares take precedence.
func (p Parts) toolsOf(a config.Agent, declared map[string]holdfast.Tool) []holdfast.Tool {
	all := p.tools(cmp.Or(a.Models[0].Name, p.defaults()[0]))
	var chosen []holdfast.Tool
	for _, name := range a.ToolNames {
		if tool, ok := declared[name]; ok {
			chosen = append(chosen, tool)
		} else if i := slices.IndexFunc(all, func(t holdfast.Tool) bool { return t.Spec().Name == name }); i >= 0 {
			chosen = append(chosen, all[i])
		}
	}
	return chosen
}

// models makes an agent's models. An error names the line in the file of each that cannot
// be made.
func (p Parts) models(a config.Agent) ([]holdfast.Model, error) {
	if a.Remote != nil {
		far, err := declared.Remote(a.Remote, a.Name, p.Getenv)
		return []holdfast.Model{far}, err
	}
	list := a.Models
	if only := list[0]; only.Name == "" {
		names := p.defaults()
		if key := only.Set(); key != "" && len(names) > 1 {
			return nil, only.Errorf(key,
				"%s is for one model, but the default model is a chain, %s; name this agent's model", key,
				p.DefaultModel)
		}
		list = make([]config.Model, len(names))
		for i, name := range names {
			list[i] = only
			list[i].Name = name
		}
	}
	var made []holdfast.Model
	var mistakes []error
	for _, m := range list {
		model, err := p.model(m, a.Line > 0)
		made, mistakes = append(made, model), append(mistakes, err)
	}
	return made, errors.Join(mistakes...)
}

// model makes a model. An error names the line in the file, if there is one.
func (p Parts) model(m config.Model, inFile bool) (holdfast.Model, error) {
	var spec ModelSpec
	if err := m.Decode(&spec, p.Getenv); err != nil {
		return nil, err
	}
	spec.Name = m.Name
	made, err := p.newModel(spec)
	switch {
	case err == nil && (spec.Timeout > 0 || spec.IdleTimeout > 0):
		return newTimed(made, spec.Timeout, spec.IdleTimeout), nil
	case err == nil || !inFile:
		return made, err
	case spec.APIKeyEnv != "":
		return nil, m.Errorf("apiKeyEnv", "%v", err)
	}
	return nil, m.Errorf("name", "%v", err)
}

func (p Parts) newModel(spec ModelSpec) (holdfast.Model, error) {
	if f, ok := p.Models[spec.Name]; ok && !strings.HasSuffix(spec.Name, "/") {
		return f(spec)
	}
	longest := ""
	for prefix := range p.Models {
		if strings.HasSuffix(prefix, "/") && len(prefix) < len(spec.Name) && strings.HasPrefix(spec.Name, prefix) &&
			len(prefix) > len(longest) {
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

// providers make the models of those that come with Holdfast, by the prefix of their names.
func (p Parts) providers() map[string]func(ModelSpec) (holdfast.Model, error) {
	all := map[string]func(ModelSpec) (holdfast.Model, error){}
	for prefix, made := range map[string]func(model.Options) (holdfast.Model, error){
		"openai/":    func(o model.Options) (holdfast.Model, error) { return openai.New(o) },
		"anthropic/": func(o model.Options) (holdfast.Model, error) { return anthropic.New(o) },
		"responses/": func(o model.Options) (holdfast.Model, error) { return responses.New(o) },
		"gemini/":    func(o model.Options) (holdfast.Model, error) { return gemini.New(o) },
	} {
		all[prefix] = func(spec ModelSpec) (holdfast.Model, error) {
			return made(model.Options{
				Model:   strings.TrimPrefix(spec.Name, prefix),
				BaseURL: spec.BaseURL,
				KeyEnv:  spec.APIKeyEnv,
				Getenv:  p.Getenv,
				Headers: spec.Headers,
				Params:  spec.Params,
				Proxy:   spec.Proxy,
				Timeout: spec.IdleTimeout,
			})
		}
	}
	return all
}
