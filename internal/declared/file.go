package declared

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/config"
	"github.com/holdfast-agents/holdfast/mcp"
)

// Loaded declarations: everything made of a file's declarations, and its end: some of the
// tools have processes, connections and directories.

// Made is what was made of the declarations of a file.
type Made struct {
	// Tools are in the order of the file, without those of MCP servers.
	Tools []holdfast.Tool
	// Servers are the MCP servers, in the order of the file, once they are opened.
	Servers []*mcp.Server

	planned []plannedServer
	shared  []*sharedServer
	ends    []func()
}

// Make makes the tools of a file, and opens no MCP server yet. The error has all mistakes. The
// caller closes the result, even then.
func Make(file *config.File, getenv func(string) string, log *slog.Logger) (*Made, error) {
	m := &Made{}
	var mistakes []error
	for _, d := range file.Declared {
		if err := missing(d); err != nil && log != nil {
			log.Warn("a credential is missing; what needs it cannot be used until it is there", "error", err)
		}
		if d.Kind == config.KindMCP {
			o, err := serverOptions(d, getenv)
			o.Log = log
			m.planned, mistakes = append(m.planned, plannedServer{o, d.Credential}), append(mistakes, err)
			continue
		}
		tools, end, err := toolsOf(d, getenv)
		if err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		m.Tools, m.ends = append(m.Tools, tools...), append(m.ends, end)
	}
	return m, errors.Join(mistakes...)
}

// ByName returns the tools by their names.
func (m *Made) ByName() map[string]holdfast.Tool {
	tools := make(map[string]holdfast.Tool, len(m.Tools))
	for _, tool := range m.Tools {
		tools[tool.Spec().Name] = tool
	}
	return tools
}

// Open starts the MCP servers, and takes over those of before that are reached in the same
// way; before may be nil.
func (m *Made) Open(before *Made) error {
	for _, planned := range m.planned {
		s, err := planned.open(before)
		if err != nil {
			return err
		}
		m.shared, m.Servers = append(m.shared, s), append(m.Servers, s.Server)
	}
	return nil
}

// Close ends the MCP servers that nothing else uses, and what else was opened.
func (m *Made) Close() {
	var wg sync.WaitGroup
	for _, s := range m.shared { // each may take a while
		wg.Go(s.leave)
	}
	for _, end := range m.ends {
		end()
	}
	wg.Wait()
}

// plannedServer is what an MCP server is started with.
type plannedServer struct {
	mcp.Options
	credential *config.Credential
}

// sum stands for all that can differ between two servers.
func (p plannedServer) sum() ([sha256.Size]byte, error) {
	raw, err := json.Marshal([]any{p.Options, p.credential})
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("the MCP server %s: %w", p.Name, err)
	}
	return sha256.Sum256(raw), nil
}

// open starts an MCP server, or takes over the same one.
func (p plannedServer) open(before *Made) (*sharedServer, error) {
	made, err := p.sum()
	if err != nil {
		return nil, err
	}
	if before != nil {
		for _, s := range before.shared {
			if s.made == made && s.join() {
				return s, nil
			}
		}
	}
	s, err := mcp.Open(p.Options)
	if err != nil {
		return nil, err
	}
	return &sharedServer{Server: s, made: made, users: 1}, nil
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
