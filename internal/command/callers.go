package command

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/apikey"
	"github.com/holdfast-agents/holdfast/jwtauth"
)

// The callers: API keys, tokens of an identity provider, or both.

// callers are the ways in which callers may identify themselves; nil those that are not
// configured.
type callers struct {
	keys   *apikey.Keys
	tokens *jwtauth.Verifier
	// ownTenant means that the tokens are all of one tenant, whatever they say.
	ownTenant bool
}

// readCallers reads the keys and the settings of the identity provider.
func readCallers(tokens jwtauth.Options, getenv func(string) string, log *slog.Logger) (c callers, err error) {
	if list := getenv("HOLDFAST_API_KEYS"); list != "" {
		var options []apikey.Option
		if tokens.JWKS != "" {
			options = append(options, apikey.BesideTokens())
		}
		if c.keys, err = apikey.Parse(list, os.ReadFile, options...); err != nil {
			return c, fmt.Errorf("HOLDFAST_API_KEYS: %w", err)
		}
	}
	switch {
	case tokens.JWKS != "":
		tokens.Log = log
		if c.tokens, err = jwtauth.New(tokens); err != nil {
			return c, fmt.Errorf("--jwks, --jwt-issuer and --jwt-audience: %w", err)
		}
		c.ownTenant = tokens.Tenant != ""
	case tokens.OwnRoles || tokens.Issuer+tokens.Audience+tokens.Tenant != "" ||
		tokens.TenantClaim+tokens.UserClaim+tokens.RolesClaim+tokens.AgentsClaim != "":
		return c, errors.New("--jwks is missing: tokens are checked with the keys at this URL, the provider's jwks_uri")
	}
	return c, nil
}

// authenticate returns what identifies callers; nil if nothing does, and the server then
// listens on loopback only.
func (c callers) authenticate() func(*http.Request) (holdfast.Principal, error) {
	switch {
	case c.keys != nil && c.tokens != nil:
		return func(r *http.Request) (holdfast.Principal, error) {
			if jwtauth.IsToken(r) {
				return c.tokens.Authenticate(r)
			}
			return c.keys.Authenticate(r)
		}
	case c.keys != nil:
		return c.keys.Authenticate
	case c.tokens != nil:
		return c.tokens.Authenticate
	}
	return nil
}

// severalTenants reports whether callers may belong to more than one tenant: tokens that
// name their tenant may, and so may keys beside tokens.
func (c callers) severalTenants() bool {
	if c.tokens != nil {
		return !c.ownTenant || c.keys != nil
	}
	return c.keys != nil && c.keys.SeveralTenants()
}

// severalUsers reports whether a tenant may have several users: tokens name theirs.
func (c callers) severalUsers(tenant string) bool {
	return c.tokens != nil || c.keys != nil && c.keys.SeveralUsers(tenant)
}

// reload reads the keys again. The log says whose keys have changed, and never has a key.
func (c callers) reload(log *slog.Logger) {
	change, err := c.keys.Reload()
	attrs := []any{"who", "this machine", "action", "reload_keys"}
	if err != nil {
		log.Error("the API keys could not be read again; all stay as they were", "error", err)
		log.Info("audit", append(attrs, "result", "failed")...)
		return
	}
	log.Info("audit", append(attrs, "result", "ok", "added", change.Added, "removed", change.Removed, "changed",
		change.Changed)...)
}
