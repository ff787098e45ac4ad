package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/server"
)

// The subcommand tools: what each MCP server and the agents file offer, which effect it became
// and why, and which agents have it. It connects to the servers, and runs nothing.

// toolSource is where tools come from, as the command prints it with --json.
type toolSource struct {
	// Source is the name of an MCP server, or what the other tools have in common.
	Source string `json:"source"`
	// MCP means that the source is an MCP server.
	MCP bool `json:"mcp,omitempty"`
	// Revision is that of the protocol which is spoken with the server.
	Revision string `json:"revision,omitempty"`
	// Error is why the server's tools are not known.
	Error string       `json:"error,omitempty"`
	Tools []listedTool `json:"tools"`
	// NotUsed are tools of the server that no agent can have.
	NotUsed []notUsed `json:"notUsed,omitempty"`
}

// listedTool is a tool and what became of it.
type listedTool struct {
	Name string `json:"name"`
	// Remote is the server's own name for it.
	Remote string          `json:"remote,omitempty"`
	Effect holdfast.Effect `json:"effect"`
	Why    string          `json:"why"`
	Agents []string        `json:"agents"`
}

type notUsed struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// toolsCommand lists the tools of the agents file.
func toolsCommand(args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	path, timeout, asJSON := cmp.Or(getenv("HOLDFAST_CONFIG"), defaultConfig), 30*time.Second, false
	flags := flag.NewFlagSet("holdfast tools", flag.ContinueOnError)
	flags.StringVar(&path, "config", path, "the file with the agents (HOLDFAST_CONFIG)")
	flags.DurationVar(&timeout, "timeout", timeout, "how long MCP servers are waited for")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	if err := parseCommand(flags, args, stderr); err != nil {
		return err
	}
	// A server's trouble stands in the list.
	parts := fileParts(getenv)
	parts.Log = slog.New(slog.DiscardHandler)
	loaded, err := server.LoadTools(path, parts)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no file %s: copy holdfast.example.yaml, or name another file with --config", path)
	}
	if err != nil {
		return err
	}
	defer loaded.Close()
	ctx, cancel := context.WithTimeoutCause(context.Background(), timeout,
		fmt.Errorf("it has not answered within %s", timeout))
	defer cancel()
	sources := toolSources(ctx, loaded)
	if asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		err = e.Encode(sources)
	} else {
		err = printTools(stdout, path, sources)
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(sources, func(s toolSource) bool { return s.Error != "" }) {
		return errProblems
	}
	return nil
}

// toolSources collects what the servers offer, what the file declares, and what comes with
// the server and an agent lists.
func toolSources(ctx context.Context, loaded *server.Loaded) []toolSource {
	sources := []toolSource{}
	elsewhere := map[string]bool{}
	for _, s := range loaded.Servers {
		source := toolSource{Source: s.Name(), MCP: true, Tools: []listedTool{}}
		if err := s.Ready(ctx); err != nil {
			source.Error = err.Error()
		}
		source.Revision = s.Revision()
		for _, tool := range s.Tools() {
			elsewhere[tool.Spec().Name] = true
			source.Tools = append(source.Tools, listed(tool, loaded.Agents))
		}
		for _, r := range s.Refused() {
			source.NotUsed = append(source.NotUsed, notUsed(r))
		}
		for _, name := range s.LeftOut() {
			source.NotUsed = append(source.NotUsed, notUsed{name, "the configuration leaves it out"})
		}
		sources = append(sources, source)
	}
	declared := toolSource{Source: "declared in the file", Tools: []listedTool{}}
	for _, tool := range loaded.Declared {
		elsewhere[tool.Spec().Name] = true
		declared.Tools = append(declared.Tools, listed(tool, loaded.Agents))
	}
	builtin := toolSource{Source: "built in", Tools: []listedTool{}}
	for _, a := range loaded.Agents {
		for _, tool := range a.Tools {
			if name := tool.Spec().Name; !elsewhere[name] {
				elsewhere[name] = true
				builtin.Tools = append(builtin.Tools, listed(tool, loaded.Agents))
			}
		}
	}
	for _, s := range []toolSource{declared, builtin} {
		if len(s.Tools) > 0 {
			sources = append(sources, s)
		}
	}
	return sources
}

// listed returns what is said of a tool.
func listed(tool holdfast.Tool, agents []holdfast.Agent) listedTool {
	spec := tool.Spec()
	l := listedTool{Name: spec.Name, Effect: spec.Effect, Why: "the tool declares it", Agents: []string{}}
	if t, ok := tool.(interface{ Why() string }); ok {
		l.Why = t.Why()
	}
	if t, ok := tool.(interface{ Remote() string }); ok {
		l.Remote = t.Remote()
	}
	named := func(t holdfast.Tool) bool { return t.Spec().Name == spec.Name }
	for _, a := range agents {
		inSet := func(s holdfast.Toolset) bool { return slices.ContainsFunc(s.Tools(), named) }
		if slices.ContainsFunc(a.Tools, named) || slices.ContainsFunc(a.Toolsets, inSet) {
			l.Agents = append(l.Agents, a.Name)
		}
	}
	return l
}

// printTools prints the list for people.
func printTools(w io.Writer, path string, sources []toolSource) error {
	if len(sources) == 0 {
		_, err := fmt.Fprintf(w, "%s: no agent has tools\n", path)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, s := range sources {
		if i > 0 {
			fmt.Fprintln(t)
		}
		switch {
		case s.MCP && s.Error != "":
			fmt.Fprintf(t, "%s (MCP server): not connected: %s\n", s.Source, s.Error)
		case s.MCP:
			fmt.Fprintf(t, "%s (MCP server, revision %s): %s\n", s.Source, s.Revision, count(len(s.Tools), "tool"))
		default:
			fmt.Fprintf(t, "%s: %s\n", s.Source, count(len(s.Tools), "tool"))
		}
		for _, tool := range s.Tools {
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", tool.Name, tool.Effect, tool.Why,
				cmp.Or(strings.Join(tool.Agents, ", "), "(no agent lists it)"))
		}
		for _, n := range s.NotUsed {
			fmt.Fprintf(t, "  %q\tnot used\t%s\n", n.Name, n.Why)
		}
	}
	return t.Flush()
}
