package server

// What was made of an agents file, and its end: some of its tools have processes,
// connections and directories.

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/config"
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
	// Declared are the tools that the file declares, in its order, whether an agent lists
	// them or not; those of MCP servers are in Servers.
	Declared []holdfast.Tool
	// Servers are the MCP servers that the file names, in its order. Close ends them.
	Servers []*mcp.Server

	parts  Parts
	sums   config.Sums
	shared []*sharedServer
	closed sync.Once
	ends   []func()
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
	return load(path, l.parts, l.shared, Parts.models)
}

func load(
	path string,
	parts Parts,
	before []*sharedServer,
	modelsOf func(Parts, config.Agent) ([]holdfast.Model, error),
) (*Loaded, error) {
	file, err := parts.read(path, map[string]holdfast.Tool{})
	if err != nil {
		return nil, err
	}
	l := &Loaded{
		parts:  parts,
		sums:   file.Sums,
		Limits: make(map[string]Limits, len(file.Agents)),
		Quotas: quotasOf(file),
	}
	declared, servers, mistakes := l.declared(file)
	l.Prices, err = pricesOf(file)
	mistakes = append(mistakes, err)
	agents, err := parts.agents(file, declared)
	mistakes = append(mistakes, err)
	for i, a := range file.Agents {
		models, err := modelsOf(parts, a)
		if mistakes = append(mistakes, err); err == nil {
			agents[i].Model, agents[i].Fallbacks = models[0], models[1:]
		}
		l.Limits[a.Name] = Limits(a.Limits)
	}
	if err := errors.Join(mistakes...); err != nil {
		l.Close()
		return nil, err
	}
	l.Agents = agents
	// From here on nothing can be wrong with the file, so what is started is used.
	for _, o := range servers {
		if err := l.open(o, before); err != nil {
			l.Close()
			return nil, err
		}
	}
	for i, a := range file.Agents {
		l.Agents[i].Toolsets = l.toolsets(a)
	}
	return l, nil
}

// declared makes the tools that a file declares, and returns the options of its MCP servers.
func (l *Loaded) declared(
	file *config.File,
) (tools map[string]holdfast.Tool, servers []plannedServer, mistakes []error) {
	tools = map[string]holdfast.Tool{}
	for _, d := range file.Declared {
		if d.Kind == config.KindMCP {
			o, err := l.parts.mcpOptions(d, l.parts.Getenv)
			servers, mistakes = append(servers, plannedServer{o, d.Credential}), append(mistakes, err)
			continue
		}
		made, end, err := l.parts.make(d, l.parts.Getenv)
		if err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		l.ends = append(l.ends, end)
		for _, tool := range made {
			tools[tool.Spec().Name] = tool
		}
		l.Declared = append(l.Declared, made...)
	}
	return tools, servers, mistakes
}

// plannedServer is what an MCP server is started with.
type plannedServer struct {
	mcp.Options
	credential *config.Credential
}

// sum stands for all that can differ between two servers.
func (s plannedServer) sum() ([sha256.Size]byte, error) {
	raw, err := json.Marshal([]any{s.Options, s.credential})
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("the MCP server %s: %w", s.Name, err)
	}
	return sha256.Sum256(raw), nil
}

// sharedServer is an MCP server that is used by several files, one loaded after the other.
type sharedServer struct {
	*mcp.Server
	// made is what it was made of.
	made [sha256.Size]byte

	mu    sync.Mutex
	users int
}

// join uses the server, too; false if it has ended.
func (s *sharedServer) join() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users > 0 {
		s.users++
	}
	return s.users > 0
}

// leave ends the server if nobody else uses it.
func (s *sharedServer) leave() {
	s.mu.Lock()
	s.users--
	last := s.users == 0
	s.mu.Unlock()
	if last {
		s.Close()
	}
}

// open starts an MCP server, or takes over the same one.
func (l *Loaded) open(planned plannedServer, before []*sharedServer) error {
	made, err := planned.sum()
	if err != nil {
		return err
	}
	for _, s := range before {
		if s.made == made && s.join() {
			l.shared, l.Servers = append(l.shared, s), append(l.Servers, s.Server)
			return nil
		}
	}
	s, err := mcp.Open(planned.Options)
	if err != nil {
		return err
	}
	l.shared, l.Servers = append(l.shared, &sharedServer{Server: s, made: made, users: 1}), append(l.Servers, s)
	return nil
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
	l.closed.Do(func() {
		var wg sync.WaitGroup
		for _, s := range l.shared { // each may take a while
			wg.Go(s.leave)
		}
		for _, end := range l.ends {
			end()
		}
		wg.Wait()
	})
}

// ValidateAgents checks a file as [Load] does, but starts no MCP servers, and makes no
// models, since those may need keys. It needs no variable of the environment. It returns the
// agents without models and without the tools of MCP servers; other tools that the file
// declares cannot be called. models has the names of each agent's models in the file, with
// commas between them; "" is the default model.
func ValidateAgents(path string, parts Parts) (agents []holdfast.Agent, models []string, err error) {
	parts = parts.withDefaults()
	declared := map[string]holdfast.Tool{}
	file, err := parts.read(path, declared)
	if err != nil {
		return nil, nil, err
	}
	if agents, err = parts.agents(file, declared); err != nil {
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
