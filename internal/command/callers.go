package command

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/apikey"
	"github.com/holdfast-agents/holdfast/jwtauth"
)

// Who may call: API keys, tokens of an identity provider, or both.

// callers are the ways in which callers may identify themselves; nil those that are not
// configured.
type callers struct {
	keys   *apikey.Keys
	tokens *jwtauth.Verifier
	// ownTenant means that the tokens are all of one tenant, whatever they say.
	ownTenant bool
}

// callers reads the keys and the settings of the identity provider.
func (o *options) callers(log *slog.Logger) (c callers, err error) {
	if list := o.getenv("HOLDFAST_API_KEYS"); list != "" {
		if c.keys, err = apikey.Parse(list, os.ReadFile); err != nil {
			return c, fmt.Errorf("HOLDFAST_API_KEYS: %w", err)
		}
	}
	switch {
	case o.jwks != "":
		options := jwtauth.Options{
			JWKS:     o.jwks,
			Issuer:   o.jwtIssuer,
			Audience: o.jwtAudience,
			Tenant:   o.jwtTenant,
			Log:      log,
		}
		if err := setClaims(&options, o.jwtClaims); err != nil {
			return c, err
		}
		if c.tokens, err = jwtauth.New(options); err != nil {
			return c, fmt.Errorf("--jwks, --jwt-issuer and --jwt-audience: %w", err)
		}
		c.ownTenant = o.jwtTenant != ""
	case o.jwtIssuer != "" || o.jwtAudience != "" || o.jwtTenant != "" || o.jwtClaims != "":
		return c, errors.New("--jwks is missing: tokens are checked with the keys at this URL, the provider's jwks_uri")
	}
	return c, nil
}

// setClaims reads --jwt-claims.
func setClaims(o *jwtauth.Options, text string) error {
	for _, entry := range list(text) {
		name, claim, ok := strings.Cut(entry, "=")
		into := map[string]*string{"tenant": &o.TenantClaim, "user": &o.UserClaim, "roles": &o.RolesClaim,
			"agents": &o.AgentsClaim}[name]
		if !ok || claim == "" || into == nil {
			return fmt.Errorf(
				"--jwt-claims=%s cannot be used: write what is in which claim, like "+
					"tenant=org_id,user=sub,roles=realm_access.roles,agents=agents",
				text,
			)
		}
		*into = claim
	}
	return nil
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
	log.Info(
		"audit",
		append(attrs, "result", "ok", "added", change.Added, "removed", change.Removed, "changed", change.Changed)...)
}
