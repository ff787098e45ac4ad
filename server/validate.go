package server

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/internal/dataformat"
	"github.com/holdfast-agents/holdfast/internal/loop"
	"github.com/holdfast-agents/holdfast/internal/netguard"
	"github.com/holdfast-agents/holdfast/internal/operator"
	"github.com/holdfast-agents/holdfast/internal/owner"
	"github.com/holdfast-agents/holdfast/internal/stores"
	"github.com/holdfast-agents/holdfast/middleware/redaction"
)

// The checks that find mistakes in a configuration before anything runs.

func (c *Config) validate() error {
	if err := c.validateAgents(); err != nil {
		return err
	}
	if err := c.validateModes(); err != nil {
		return err
	}
	if err := validatePatterns(c.RedactPatterns); err != nil {
		return err
	}
	if c.DeltaWindow != AutoWindow && (c.DeltaWindow < 0 || c.DeltaWindow > 10*time.Second) {
		return fmt.Errorf("a delta window of %s is not possible: use 0s to 10s, or AutoWindow", c.DeltaWindow)
	}
	if c.Lease < 100*time.Millisecond {
		return fmt.Errorf("a lease of %s is too short: use at least 100ms; 3s is a good choice", c.Lease)
	}
	if err := c.validateBounds(); err != nil {
		return err
	}
	if _, err := c.door(); err != nil {
		return err
	}
	return errors.Join(c.validatePublicURL(), c.validateAddr(), c.validateOperatorToken())
}

// validateAgents checks what [Server.Reload] replaces.
func (c *Config) validateAgents() error {
	if len(c.Agents) == 0 {
		return errors.New("no agent is configured: set Config.Agents")
	}
	names := map[string]bool{}
	for _, a := range c.Agents {
		switch {
		case a.Name == "":
			return errors.New("an agent has no name: set Agent.Name")
		case names[a.Name]:
			return fmt.Errorf("two agents are named %q: give each a name of its own", a.Name)
		case a.Model == nil:
			return fmt.Errorf("agent %q has no model: set Agent.Model", a.Name)
		case slices.ContainsFunc(a.Fallbacks, func(m holdfast.Model) bool { return m == nil }):
			return fmt.Errorf("agent %q has a model in Agent.Fallbacks that is nil: leave it out", a.Name)
		case a.OnRevision != "" && a.OnRevision != owner.Adopt && a.OnRevision != owner.Pin:
			return fmt.Errorf("agent %q has OnRevision %q: use adopt or pin", a.Name, a.OnRevision)
		case a.Approvals != "" && a.Approvals != access.RoleUser && a.Approvals != access.RoleApprover:
			return fmt.Errorf("agent %q leaves its questions to %q: Agent.Approvals is user or approver", a.Name,
				a.Approvals)
		}
		names[a.Name] = true
		if err := errors.Join(validateTools(a), validateClient(a)); err != nil {
			return err
		}
	}
	return c.Quotas.validate()
}

func (c *Config) validatePublicURL() error {
	if c.PublicURL == "" {
		return nil
	}
	u, err := url.Parse(c.PublicURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" ||
		u.Fragment != "" || u.User != nil {
		return fmt.Errorf("the public URL %q cannot be used: write it like https://agents.example.com", c.PublicURL)
	}
	return nil
}

func (c *Config) validateBounds() error {
	switch {
	case c.MaxBody < 1<<10:
		return fmt.Errorf("bodies of at most %d bytes are too small: allow at least 1024", c.MaxBody)
	case c.MaxBodies < 2*max(c.MaxBody, c.MaxMediaBody):
		return fmt.Errorf("%d bytes for all bodies are too few: allow at least twice the %d of one, "+
			"because one tenant gets half", c.MaxBodies, max(c.MaxBody, c.MaxMediaBody))
	case c.BodyTimeout < time.Second:
		return fmt.Errorf("%s is too short for a body to arrive: allow at least 1s; 30s is a good choice",
			c.BodyTimeout)
	case c.MaxConnections < 1:
		return fmt.Errorf("%d connections are too few: allow at least 1", c.MaxConnections)
	}
	return nil
}

func (c *Config) validateModes() error {
	switch loop.Frequency(c.CheckpointFrequency) {
	case loop.PerIteration, loop.PerTurn, loop.Manual:
	default:
		return fmt.Errorf("unknown checkpoint frequency %q: use per_iteration, per_turn or manual",
			c.CheckpointFrequency)
	}
	switch loop.SchemaMode(c.SchemaChanges) {
	case loop.SchemaWarn, loop.SchemaFail, loop.SchemaSilent:
	default:
		return fmt.Errorf("unknown mode %q for schema changes: use warn, fail or silent", c.SchemaChanges)
	}
	if c.OnRevision != owner.Adopt && c.OnRevision != owner.Pin {
		return fmt.Errorf("Config.OnRevision is %q: use adopt or pin", c.OnRevision)
	}
	if c.PinTimeout < 0 {
		return fmt.Errorf("a pin timeout of %s is not possible: use one above 0s, like 15m", c.PinTimeout)
	}
	if _, err := dataformat.Parse(c.DataFormat); err != nil {
		return err
	}
	_, err := stores.ParseDurability(c.Durability)
	return err
}

// validatePatterns checks the patterns as the middleware with the same options does.
func validatePatterns(patterns []redaction.Pattern) error {
	if err := (redaction.Options{Patterns: patterns}).Validate(); err != nil {
		return fmt.Errorf("Config.RedactPatterns cannot be used: %w", err)
	}
	return nil
}

// operatorToken is what can be a token, in an address and in a header.
var operatorToken = regexp.MustCompile(fmt.Sprintf(`^[\w-]{%d,%d}$`, operator.MinToken, operator.MaxToken))

func (c *Config) validateOperatorToken() error {
	if c.OperatorToken == "" || operatorToken.MatchString(c.OperatorToken) {
		return nil
	}
	return fmt.Errorf("the operator's token (HOLDFAST_OPERATOR_TOKEN, or Config.OperatorToken) cannot be used: use "+
		"%d to %d letters, digits, - and _", operator.MinToken, operator.MaxToken)
}

func (c *Config) validateAddr() error {
	host, _, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return fmt.Errorf("the address %q cannot be used: write host:port, like localhost:8080", c.Addr)
	}
	if c.Authenticate != nil || c.AllowAnonymous {
		return nil
	}
	if !netguard.IsLoopback(host) {
		return fmt.Errorf("without authentication the server listens on loopback only, not on %q: use "+
			"localhost:PORT, configure API keys (HOLDFAST_API_KEYS, or Config.Authenticate), or let everybody in "+
			"with HOLDFAST_ALLOW_ANONYMOUS=1", c.Addr)
	}
	return nil
}
