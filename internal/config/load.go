package config

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v4"
)

// Reading the file as a whole.

// Load reads and checks the file at path. The error is an [*Error] with every mistake,
// or says why the file cannot be read; if it does not exist, the error wraps
// fs.ErrNotExist.
func Load(path string, known Known) (*File, error) {
	data, err := readBounded(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return Parse(path, data, known, readBounded)
}

// Parse checks the content of a file. name is used in mistakes. Paths in
// instructionsFile are relative to its directory and are read with readFile. The error
// is an [*Error] with every mistake.
func Parse(name string, data []byte, known Known, readFile func(path string) ([]byte, error)) (*File, error) {
	files := map[string]string{}
	p := &parser{mistakes{file: name}, noting(files, readFile), readSchema()}
	f := &File{Name: name}
	root := p.document(data)
	if root != nil {
		p.sections(f, root, known)
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	f.Sums = sumsOf(root, func(i int) (string, string) { return f.Agents[i].Name, f.Agents[i].Instructions }, files)
	return f, nil
}

// readBounded reads at most one byte more than is allowed, so that a device or a wrong
// path cannot fill the memory, but the parser still sees that the file is too large.
func readBounded(path string) ([]byte, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	// Nothing was written, so a failed close loses nothing.
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxDocument+1))
}

// sections reads the file's keys.
func (p *parser) sections(f *File, root *yaml.Node, known Known) {
	if root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		p.mistake(position(root), "the file is empty; it needs agents, see holdfast.example.yaml")
		return
	}
	var agents, servers, tools, openAPI *yaml.Node
	p.object(root, "the file", fields{
		"agents":     func(n *yaml.Node) { agents = n },
		"mcpServers": func(n *yaml.Node) { servers = n },
		"tools":      func(n *yaml.Node) { tools = n },
		"openapi":    func(n *yaml.Node) { openAPI = n },
		"prices":     func(n *yaml.Node) { f.Prices = p.prices(n, known.Price) },
		"limits":     func(n *yaml.Node) { f.Quotas = p.quotas(n) },
		"settings":   func(n *yaml.Node) { f.Settings = p.settings(n, known.Settings) },
	})
	// Agents come after the prices and the tools, wherever those are: they are made with them.
	catalog := &catalog{places: map[string]place{}}
	d := &declarer{p: p, look: known.Declared, catalog: catalog}
	for _, section := range []struct {
		n    *yaml.Node
		read func(*yaml.Node)
	}{{servers, d.servers}, {tools, d.tools}, {openAPI, d.openAPI}} {
		if section.n != nil {
			section.read(section.n)
		}
	}
	f.Declared = d.all
	switch {
	case agents != nil:
		r := &agentReader{
			p:       p,
			known:   known,
			catalog: catalog,
			prices:  f.Prices,
			names:   map[string]int{},
		}
		f.Agents = r.agents(agents)
	case resolve(root).Kind == yaml.MappingNode:
		p.mistake(position(root), "the file has no agents; start with agents: and a list of them, "+
			"see holdfast.example.yaml")
	}
}

// quotas reads the limits of tenants and users, and returns them as JSON.
func (p *parser) quotas(n *yaml.Node) json.RawMessage {
	r := newDeclaring(p, "limits", position(n))
	r.short = true
	raw, err := json.Marshal(r.read(p.def("quotas"), n, "limits"))
	if err != nil {
		p.mistake(position(n), "limits cannot be written as JSON: %v", err)
	}
	return raw
}
