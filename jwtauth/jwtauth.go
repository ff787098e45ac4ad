// Package jwtauth identifies callers by the JWTs of an identity provider (RFC 7519; for
// access tokens RFC 9068). It checks the signature with the keys that the provider
// publishes, issuer, audience and times, and takes tenant, user, roles and agents from
// claims. [Verifier.Authenticate] is what server.Config.Authenticate takes; together with
// API keys, see [IsToken].
package jwtauth

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/headers"
	"github.com/holdfast-agents/holdfast/internal/netguard"
)

// Options say whose tokens are good, and what they mean.
type Options struct {
	// JWKS is the URL of the provider's keys, its jwks_uri. It must be https, except on
	// this machine.
	JWKS string
	// Issuer must be the token's iss, exactly.
	Issuer string
	// Audience must be one of the token's aud: the name of this server at the provider.
	Audience string
	// Tenant, if set, is the tenant of all tokens. Otherwise the claim TenantClaim is.
	Tenant string
	// TenantClaim is the claim with the tenant; default "tenant".
	TenantClaim string
	// UserClaim is the claim with the user; default "sub".
	UserClaim string
	// RolesClaim is the claim with the roles of package access, a list or a text with
	// spaces between them; default "roles". Each role is preceded by [RolePrefix]; other
	// values in the claim are ignored. "operator", a role of earlier builds, means
	// access.RoleTenantOperator. A token without the claim has access.RoleUser.
	RolesClaim string
	// OwnRoles: the claim is for this server alone, so its roles count without the prefix
	// too.
	OwnRoles bool
	// AgentsClaim is the claim with the names of the agents that the caller may use, a
	// list or a text with spaces between them; default "agents". A token without the
	// claim may use all.
	AgentsClaim string
	// Client fetches the keys; the default waits 5 seconds and follows no redirects.
	Client *http.Client
	// Log gets why keys could not be fetched, and at the level debug why a token was
	// refused; default none.
	Log *slog.Logger
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Verifier checks tokens. It is safe for concurrent use, and has no goroutine: keys are
// fetched when a token needs them.
type Verifier struct {
	o    Options
	keys *keySet
}

// algorithms are those whose keys can be published. With HMAC, everyone who has a published
// key could sign.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256,
	jose.RS384,
	jose.RS512,
	jose.PS256,
	jose.PS384,
	jose.PS512,
	jose.ES256,
	jose.ES384,
	jose.ES512,
	jose.EdDSA,
}

const (
	// maxToken bounds a token, in bytes.
	maxToken = 16 << 10
	// leeway is how much the provider's clock may differ.
	leeway = 30 * time.Second
	// maxName bounds a tenant's and a user's name, in bytes, as for API keys.
	maxName = 128
)

// New checks the options. It fetches nothing yet, so that a server can start before its
// identity provider does.
func New(o Options) (*Verifier, error) {
	u, err := url.Parse(o.JWKS)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("the URL of the keys cannot be used: write it in full, like " +
			"https://id.example.com/.well-known/jwks.json")
	case u.Scheme == "http" && !netguard.IsLoopback(u.Hostname()):
		return nil, errors.New("the URL of the keys must be https: anyone who can change them on " +
			"their way can sign tokens")
	case u.User != nil:
		return nil, errors.New("the URL of the keys must not contain a user or a password: the keys are public")
	case o.Issuer == "":
		return nil, errors.New("the issuer is missing: it is the iss of the provider's tokens")
	case o.Audience == "":
		return nil, errors.New("the audience is missing: without it, tokens for other services would be good here too")
	}
	o.TenantClaim, o.UserClaim = cmp.Or(o.TenantClaim, "tenant"), cmp.Or(o.UserClaim, "sub")
	o.RolesClaim, o.AgentsClaim = cmp.Or(o.RolesClaim, "roles"), cmp.Or(o.AgentsClaim, "agents")
	if o.Tenant != "" {
		if err := checkName("tenant", o.Tenant); err != nil {
			return nil, err
		}
	}
	if o.Client == nil {
		// A redirect could lead to where somebody else may publish keys.
		noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		o.Client = &http.Client{Timeout: fetchTimeout, CheckRedirect: noRedirect}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Verifier{o: o, keys: &keySet{url: o.JWKS, client: o.Client, log: o.Log, now: o.Now}}, nil
}

// IsToken reports whether what a request shows has the form of a JWT, so that its caller
// is for a Verifier, and not for API keys, to identify.
func IsToken(r *http.Request) bool {
	token, ok := headers.BearerToken(r, maxToken)
	return ok && strings.HasPrefix(token, "eyJ") && strings.Count(token, ".") == 2
}

// Authenticate returns who sent r, by its header "Authorization: Bearer TOKEN", with the
// rights that the token grants until it expires. The error has the code unauthenticated,
// or auth_unavailable if the provider's keys cannot be fetched. It never contains the
// token.
func (v *Verifier) Authenticate(r *http.Request) (holdfast.Principal, error) {
	token, ok := headers.BearerToken(r, maxToken)
	if !ok {
		return holdfast.Principal{}, holdfast.Errorf(codes.Unauthenticated, "This server needs a token.").
			WithHint("Send the header Authorization: Bearer TOKEN, with an access token of the identity provider.")
	}
	claims, err := v.verify(r, token)
	var who holdfast.Principal
	if err == nil {
		who, err = v.principal(claims)
	}
	var coded *holdfast.Error
	if err == nil || errors.As(err, &coded) {
		return who, err
	}
	v.o.Log.Debug("a token was refused", "error", err)
	message := "The token is not valid here."
	if errors.Is(err, jwt.ErrExpired) {
		message = "The token has expired."
	}
	return holdfast.Principal{}, holdfast.Errorf(codes.Unauthenticated, "%s", message).
		WithHint("Get a new access token for this server from the identity provider, and send it as " +
			"Authorization: Bearer TOKEN.").
		Wrap(err)
}

// verify returns the claims of a token whose type, issuer, audience, times and signature are
// right. The token's own claims come first, so that no key is fetched for a token that would
// be refused with any: invented tokens must not use up the attempts to fetch a new key.
func (v *Verifier) verify(r *http.Request, token string) (claimSet, error) {
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil {
		return nil, fmt.Errorf("parse the token: %w", err)
	}
	header := parsed.Headers[0]
	if !isAccessToken(header) {
		return nil, errors.New("the token's typ is not that of an access token")
	}
	var standard jwt.Claims
	var all claimSet
	if err := parsed.UnsafeClaimsWithoutVerification(&standard, &all); err != nil {
		return nil, fmt.Errorf("read the claims: %w", err)
	}
	if standard.Expiry == nil {
		return nil, errors.New("the token never expires")
	}
	expected := jwt.Expected{Issuer: v.o.Issuer, AnyAudience: jwt.Audience{v.o.Audience}, Time: v.o.Now()}
	if err := standard.ValidateWithLeeway(expected, leeway); err != nil {
		return nil, err
	}
	keys, err := v.keys.find(r.Context(), header.KeyID, header.Algorithm)
	if err != nil {
		return nil, err
	}
	err = errors.New("the provider has no such key")
	for _, key := range keys {
		if err = parsed.Claims(key); err == nil {
			return all, nil
		}
	}
	return nil, fmt.Errorf("check the signature: %w", err)
}

// isAccessToken reports whether a token's typ is none, JWT or at+jwt (RFC 9068). The provider
// signs other things with the same keys, like logout tokens (RFC 8725, 3.11).
func isAccessToken(header jose.Header) bool {
	typ, given := header.ExtraHeaders[jose.HeaderType]
	if !given {
		return true
	}
	name, _ := typ.(string)
	name = strings.TrimPrefix(strings.ToLower(name), "application/")
	return name == "jwt" || name == "at+jwt"
}

// principal returns the caller that the claims describe.
func (v *Verifier) principal(claims claimSet) (holdfast.Principal, error) {
	who := holdfast.Principal{Tenant: v.o.Tenant, Rights: &access.Rights{Roles: []access.Role{access.RoleUser}}}
	var err error
	if who.Tenant == "" {
		who.Tenant, err = claims.text(v.o.TenantClaim)
	}
	if err == nil {
		who.User, err = claims.text(v.o.UserClaim)
	}
	if err == nil {
		err = errors.Join(checkName("tenant", who.Tenant), checkName("user", who.User))
	}
	roles, given, e := claims.list(v.o.RolesClaim)
	if given {
		who.Rights.Roles = knownRoles(roles, v.o.OwnRoles)
	}
	agents, given, e2 := claims.list(v.o.AgentsClaim)
	if given {
		who.Rights.Agents = slices.Clip(append([]string{}, agents...)) // not nil, which would mean all
	}
	expires, e3 := claims.time("exp")
	who.Rights.Expires = expires.Add(leeway)
	if err := errors.Join(err, e, e2, e3); err != nil {
		return holdfast.Principal{}, err
	}
	return who, nil
}

// RolePrefix stands before the roles of package access in a token, as in
// "holdfast:tenant_operator".
// Their bare names are everyday words, which other applications of the provider use for
// something else.
const RolePrefix = "holdfast:"

// knownRoles returns the roles of package access in a list; providers have others too. bare
// roles need no prefix.
func knownRoles(names []string, bare bool) []access.Role {
	roles := []access.Role{}
	for _, name := range names {
		word, prefixed := strings.CutPrefix(name, RolePrefix)
		if !prefixed && !bare {
			continue
		}
		if word == string(access.FormerOperator) { // a token can only be let in or not, so it is the lesser one
			word = string(access.RoleTenantOperator)
		}
		if role, err := access.ParseRole(word); err == nil && !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	return roles
}
