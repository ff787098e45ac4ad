package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// The checks of an agent, whether it comes from a file or from a program.

// validateTools checks the names of an agent's tools, with those that its middleware brings.
func validateTools(a holdfast.Agent) error {
	tools := map[string]bool{}
	all := slices.Clip(a.Tools)
	for _, m := range a.Middleware {
		all = append(all, m.Tools...)
	}
	for _, t := range all {
		spec := t.Spec()
		name := spec.Name
		if spec.Outside != nil {
			if err := spec.Outside.Validate(); err != nil {
				return fmt.Errorf("agent %q: tool %q: in Outside %w", a.Name, name, err)
			}
		}
		if name == "" || tools[name] {
			return fmt.Errorf("agent %q has a tool without a name, or two tools named %q: give each a name of its own",
				a.Name, name)
		}
		tools[name] = true
	}
	return nil
}

// validateClient checks the values of an agent's policy for clients.
func validateClient(a holdfast.Agent) error {
	for _, v := range []struct {
		name, value string
		known       []string
	}{
		{"Import", a.Client.Import, []string{"", thread.ImportAll, thread.ImportUsers, thread.ImportNone}},
		{"Instructions", a.Client.Instructions,
			[]string{"", thread.ShowAsSystem, thread.ShowAsUser, thread.ShowNothing}},
		{"Context", a.Client.Context, []string{"", thread.ShowAsSystem, thread.ShowAsUser, thread.ShowNothing}},
		{"MediaURLs", a.Client.MediaURLs, []string{"", thread.MediaHTTPS, thread.MediaAny, thread.MediaNone}},
	} {
		if !slices.Contains(v.known, v.value) {
			return fmt.Errorf("agent %q has an unknown Client.%s %q: use %s", a.Name, v.name, v.value,
				strings.Join(v.known[1:], ", "))
		}
	}
	return nil
}
