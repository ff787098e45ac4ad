package server

// Loaded is everything made of an agents file, and its end: some of its tools have processes,
// connections and directories.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/config"
	"github.com/holdfast-agents/holdfast/internal/declared"
	"github.com/holdfast-agents/holdfast/mcp"
	"github.com/holdfast-agents/holdfast/middleware/budget"
)

// Loaded is what an agents file says. Close it when nothing uses its agents any more.
type Loaded struct {
	// Agents are the agents of the file, for [Config].Agents.
	Agents []holdfast.Agent
	// Limits are for [Config].Limits.
	Limits map[string]Limits
	// Quotas are for [Config].Quotas.
	Quotas Quotas
	// Prices are for [Config].Prices.
	Prices map[string]budget.Price
	// Settings are what the file has under settings, by key; [Parts].Settings has checked them.
	Settings map[string]string
	// Declared are the tools that the file declares, in its order, whether an agent lists
	// them or not; those of MCP servers are in Servers.
	Declared []holdfast.Tool
	// Servers are the MCP servers that the file names, in its order. Close ends them.
	Servers []*mcp.Server

	parts  Parts
	sums   config.Sums
	made   *declared.Made
	closed sync.Once
}

// Load reads an agents file, the same that the holdfast program reads, for a program with
// parts of its own. Without a path there is one agent, with the default model and the tools
// that come with Holdfast. Load starts the MCP servers of the file and does not wait for
// them. The error has a line for each mistake, with its place in the file; if there is no
// file, it wraps fs.ErrNotExist.
func Load(path string, parts Parts) (*Loaded, error) {
	return load(path, parts.withDefaults(), nil, Parts.models)
}

// LoadTools reads a file as [Load] does, for a look at its tools: it makes no models, which
// may need keys, so its agents cannot run.
func LoadTools(path string, parts Parts) (*Loaded, error) {
	none := func(Parts, config.Agent) ([]holdfast.Model, error) { return []holdfast.Model{nil}, nil }
	return load(path, parts.withDefaults(), nil, none)
}

// Again reads the file, or another one, as [Load] does, while what was loaded before is
// still in use. It takes over the MCP servers that are reached in the same way. Both are to
// be closed, in any order.
func (l *Loaded) Again(path string) (*Loaded, error) {
	return load(path, l.parts, l.made, Parts.models)
}

func load(
	path string, parts Parts, before *declared.Made, modelsOf func(Parts, config.Agent) ([]holdfast.Model, error),
) (*Loaded, error) {
	file, err := parts.read(path, map[string]holdfast.Tool{})
	if err != nil {
		return nil, err
	}
	l := &Loaded{
		parts:    parts,
		sums:     file.Sums,
		Limits:   make(map[string]Limits, len(file.Agents)),
		Settings: file.Settings,
	}
	var mistakes []error
	noted := func(err error) bool { mistakes = append(mistakes, err); return err != nil }
	l.made, err = declared.Make(file, parts.Getenv, parts.Log)
	noted(err)
	l.Quotas, err = decode[Quotas](file.Quotas)
	noted(err)
	l.Prices, err = decode[map[string]budget.Price](file.Prices)
	noted(err)
	agents, err := parts.agents(file, l.made.ByName())
	noted(err)
	for i, a := range file.Agents {
		if models, err := modelsOf(parts, a); !noted(err) {
			agents[i].Model, agents[i].Fallbacks = models[0], models[1:]
		}
		l.Limits[a.Name], err = decode[Limits](a.Limits)
		noted(err)
	}
	if err := errors.Join(mistakes...); err != nil {
		l.Close()
		return nil, err
	}
	// From here on nothing can be wrong with the file, so what is started is used.
	if err := l.made.Open(before); err != nil {
		l.Close()
		return nil, err
	}
	l.Agents, l.Declared, l.Servers = agents, l.made.Tools, l.made.Servers
	for i, a := range file.Agents {
		l.Agents[i].Toolsets = declared.Toolsets(a, l.Servers, parts.Log)
	}
	return l, nil
}

// decode writes a part of a file, which has been checked, into what it configures.
func decode[T any](part any) (v T, err error) {
	raw, err := json.Marshal(part)
	if err != nil {
		return v, err
	}
	err = holdfast.DecodeOptions(raw, &v)
	return v, err
}

// Ready waits until each MCP server was connected to or the first attempt has failed. The
// error names those that are not connected, with the reasons; they are tried again, and
// their tools are there when they are.
func (l *Loaded) Ready(ctx context.Context) error {
	var errs []error
	for _, s := range l.Servers {
		if err := s.Ready(ctx); err != nil {
			errs = append(errs, fmt.Errorf("the MCP server %s: %w", s.Name(), err))
		}
	}
	return errors.Join(errs...)
}

// Close ends the MCP servers that nothing else uses, and what else was opened. Calls in
// progress fail.
func (l *Loaded) Close() {
	l.closed.Do(l.made.Close)
}

// ValidateAgents checks a file as [Load] does, but starts no MCP servers, and makes no
// models, since those may need keys. It needs no variable of the environment. It returns the
// agents without models and without the tools of MCP servers; other tools that the file
// declares cannot be called. models has the names of each agent's models in the file, with
// commas between them; "" is the default model.
func ValidateAgents(path string, parts Parts) (agents []holdfast.Agent, models []string, err error) {
	parts = parts.withDefaults()
	tools := map[string]holdfast.Tool{}
	file, err := parts.read(path, tools)
	if err != nil {
		return nil, nil, err
	}
	if agents, err = parts.agents(file, tools); err != nil {
		return nil, nil, err
	}
	for _, a := range file.Agents {
		names := make([]string, len(a.Models))
		for i, m := range a.Models {
			names[i] = m.Name
		}
		models = append(models, strings.Join(names, ","))
	}
	return agents, models, nil
}
