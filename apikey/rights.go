package apikey

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast/access"
)

// The options of an entry: what its key may be used for, and until when.

// parseRights reads "agents=a,b;roles=read,user;expires=2026-12-31T00:00:00Z", in any
// order; each option may be missing. Errors contain nothing of the text but the name of
// an option.
func parseRights(options []string) (*access.Rights, error) {
	r := &access.Rights{}
	seen := map[string]bool{}
	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		if seen[name] {
			return nil, fmt.Errorf("the option %s occurs twice", name)
		}
		var err error
		switch name {
		case "roles":
			r.Roles, err = parseRoles(value)
		case "agents":
			r.Agents, err = parseAgents(value)
		case "expires":
			if r.Expires, err = time.Parse(time.RFC3339, value); err != nil {
				err = errors.New("expires is not a time: write it like 2026-12-31T12:00:00Z")
			}
		default:
			err = errors.New("there is an unknown option after a semicolon: use agents=, roles= and expires=")
		}
		if err != nil {
			return nil, err
		}
		seen[name] = true
	}
	if r.Roles == nil {
		r.Roles = []access.Role{access.RoleUser}
	}
	return r, nil
}

func parseRoles(list string) ([]access.Role, error) {
	var roles []access.Role
	for name := range strings.SplitSeq(list, ",") {
		role := access.FormerOperator // whether it can be taken depends on the other keys
		if name != string(role) {
			var err error
			if role, err = access.ParseRole(name); err != nil {
				return nil, fmt.Errorf("roles: %w", err)
			}
		}
		if !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	return roles, nil
}

func parseAgents(list string) ([]string, error) {
	var agents []string
	for name := range strings.SplitSeq(list, ",") {
		agent, err := url.QueryUnescape(name)
		if err != nil || agent == "" || strings.ContainsAny(name, "+=") {
			return nil, errors.New("agents is not a list of names: write agents=support,billing, and " +
				"query-escape other characters")
		}
		agents = append(agents, agent)
	}
	return agents, nil
}

// formatRights writes what parseRights reads, with a semicolon before each option, and
// leaves out what is the default.
func formatRights(r *access.Rights) string {
	if r == nil {
		return ""
	}
	var b strings.Builder
	if len(r.Agents) > 0 {
		names := make([]string, len(r.Agents))
		for i, name := range r.Agents {
			names[i] = escape(name)
		}
		b.WriteString(";agents=" + strings.Join(names, ","))
	}
	if !slices.Equal(r.Roles, []access.Role{access.RoleUser}) {
		names := make([]string, len(r.Roles))
		for i, role := range r.Roles {
			names[i] = string(role)
		}
		b.WriteString(";roles=" + strings.Join(names, ","))
	}
	if !r.Expires.IsZero() {
		b.WriteString(";expires=" + r.Expires.UTC().Format(time.RFC3339))
	}
	return b.String()
}

// checkRights refuses what no entry can say.
func checkRights(r *access.Rights) error {
	switch {
	case r == nil:
		return nil
	case len(r.Roles) == 0:
		return errors.New("the key has no role, so it could not be used for anything")
	case r.Agents != nil && (len(r.Agents) == 0 || slices.Contains(r.Agents, "")):
		return errors.New("the list of agents names none: leave it out for all agents")
	}
	for _, role := range r.Roles {
		if _, err := access.ParseRole(string(role)); err != nil {
			return fmt.Errorf("roles: %w", err)
		}
	}
	return nil
}
