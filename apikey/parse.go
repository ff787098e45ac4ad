package apikey

// Reading HOLDFAST_API_KEYS: the entries that an operator configures, with errors that
// never show a secret.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
)

// separator is between the principal and the digest of an entry.
const separator = ":sha256:"

// maxName bounds a tenant's and a user's name, in bytes: both are part of every storage
// key.
const maxName = 128

// Parse reads the value of HOLDFAST_API_KEYS: entries separated by commas, spaces or
// newlines, each "tenant/user:sha256:HEX", where HEX is the SHA-256 of a key, and
// tenant and user are query-escaped (a space is %20, a plus %2B). An entry "@PATH"
// stands for a file with one entry per line and comments after #, which is read with
// readFile, usually os.ReadFile.
//
// Options may follow the user, each after a semicolon: "roles=read,approver" (roles of
// package access; default user), "agents=support,billing" (default all agents) and
// "expires=2026-12-31T12:00:00Z" (default never).
//
// The role "operator" of earlier builds means access.RoleServerOperator while all callers are of
// one tenant. Where they are not, it is a mistake, and the error says what to write.
//
// A user may have several keys, so that one can be replaced without a gap. All mistakes
// are reported, each with the place of its entry, but with no more of its text than
// tenant and user. A value without any entry is a mistake too: it must not open the
// server to everyone.
func Parse(s string, readFile func(path string) ([]byte, error), options ...Option) (*Keys, error) {
	k := &Keys{text: s, readFile: readFile}
	for _, option := range options {
		option(k)
	}
	t, err := k.read()
	if err != nil {
		return nil, err
	}
	k.current.Store(t)
	return k, nil
}

// Option is an option of [Parse].
type Option func(*Keys)

// BesideTokens says that callers may show other credentials than keys too, of tenants that are
// not in the list.
func BesideTokens() Option { return func(k *Keys) { k.besideTokens = true } }

// read reads the list as it is now.
func (k *Keys) read() (*table, error) {
	p := &parser{keys: &table{byIndex: map[[indexLength]byte][]*entry{}}}
	for i, text := range split(k.text) {
		if path, ok := strings.CutPrefix(text, "@"); ok {
			p.file(path, k.readFile)
			continue
		}
		p.entry(fmt.Sprintf("API key %d", i+1), text)
	}
	if len(p.mistakes) == 0 && p.keys.count == 0 {
		p.mistakes = append(p.mistakes,
			errors.New("no API key is configured; make one with: holdfast key --tenant TENANT --user USER"))
	}
	p.formerOperators(k.besideTokens)
	if err := errors.Join(p.mistakes...); err != nil {
		return nil, err
	}
	return p.keys, nil
}

// split splits a list at commas and spaces, but not at the commas between the values of
// an option.
func split(s string) (entries []string) {
	for _, field := range strings.Fields(s) {
		open := false // the last entry has options, and has not come to its end
		for part := range strings.SplitSeq(field, ",") {
			switch {
			case open:
				entries[len(entries)-1] += "," + part
			case part != "":
				entries = append(entries, part)
			default:
				continue
			}
			last := entries[len(entries)-1]
			open = strings.Contains(last, ";") && !strings.Contains(last, separator)
		}
	}
	return entries
}

type parser struct {
	keys     *table
	mistakes []error
	// former are the keys with the role of earlier builds, in the order of the list.
	former []*entry
}

func (p *parser) mistake(where, format string, args ...any) {
	p.mistakes = append(p.mistakes, fmt.Errorf("%s: "+format, append([]any{where}, args...)...))
}

func (p *parser) file(path string, readFile func(string) ([]byte, error)) {
	data, err := readFile(path)
	if err != nil {
		p.mistakes = append(p.mistakes, fmt.Errorf("the file of API keys cannot be read: %w", err))
		return
	}
	before := p.keys.count + len(p.mistakes)
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		// A # in a name is escaped, so an unescaped one starts a comment.
		text, _, _ := strings.Cut(line, "#")
		if text = strings.TrimSpace(text); text != "" {
			p.entry(fmt.Sprintf("%s:%d", path, number), text)
		}
	}
	if p.keys.count+len(p.mistakes) == before {
		p.mistake(path, "the file has no API key; make one with: holdfast key --tenant TENANT --user USER")
	}
}

// entry adds one entry. Until the text is known to have the right form, any part of it
// may be a secret and is not shown.
func (p *parser) entry(where, text string) {
	name, sum, ok := strings.Cut(text, separator)
	if !ok {
		hint := "write tenant/user:sha256:HEX; make it with: holdfast key --tenant TENANT --user USER"
		if strings.Contains(text, keyPrefix) {
			hint = "this looks like the key itself, which must not be configured; " + hint
		}
		p.mistake(where, "not an entry: %s", hint)
		return
	}
	options := strings.Split(name, ";")
	principal, err := parseName(options[0])
	if err == nil {
		principal.Rights, err = parseRights(options[1:])
	}
	if err != nil {
		p.mistake(where, "%w", err)
		return
	}
	where = fmt.Sprintf("%s (%s)", where, formatName(principal))
	var d digest
	if n, err := hex.Decode(d[:], []byte(sum[:min(len(sum), 2*len(d))])); err != nil || n != len(d) ||
		len(sum) != 2*len(d) {
		p.mistake(where, "what follows sha256: must be exactly 64 hexadecimal digits")
		return
	}
	if d == sha256.Sum256(nil) || d == sha256.Sum256([]byte("\n")) {
		p.mistake(where, "this is the SHA-256 of nothing: the key was empty when it was hashed")
		return
	}
	index := [indexLength]byte(d[:indexLength])
	for _, other := range p.keys.byIndex[index] {
		if other.digest == d {
			p.mistake(where, "the same key is already at %s; give every user a key of their own", other.where)
			return
		}
	}
	e := &entry{digest: d, principal: principal, where: where}
	e.principal.Rights.Revoked, e.revoke = context.WithCancel(context.Background())
	p.keys.byIndex[index] = append(p.keys.byIndex[index], e)
	p.keys.count++
	if slices.Contains(e.principal.Rights.Roles, access.FormerOperator) {
		p.former = append(p.former, e)
	}
}

// formerOperators gives the keys with the role of earlier builds the role that it means now. It
// was for those who run the server; where callers may be of several tenants it may have been given
// to one's administrators, too, so that people must say which of the two they mean.
func (p *parser) formerOperators(besideTokens bool) {
	unclear := ""
	switch {
	case p.keys.severalTenants():
		unclear = "the keys are of several tenants"
	case besideTokens:
		unclear = "callers with tokens may be of other tenants"
	}
	for _, e := range p.former {
		if unclear != "" {
			_, err := access.ParseRole(string(access.FormerOperator))
			p.mistake(e.where, "%s, and %w", unclear, err)
			continue
		}
		roles := e.principal.Rights.Roles
		if slices.Contains(roles, access.RoleServerOperator) {
			roles = slices.DeleteFunc(roles, func(r access.Role) bool { return r == access.FormerOperator })
		} else {
			roles[slices.Index(roles, access.FormerOperator)] = access.RoleServerOperator
		}
		e.principal.Rights.Roles = roles
	}
}

// parseName reads "tenant/user". Its errors contain nothing of the text.
func parseName(s string) (holdfast.Principal, error) {
	tenant, user, ok := strings.Cut(s, "/")
	switch {
	case !ok:
		return holdfast.Principal{}, errors.New("before :sha256: there must be tenant/user")
	case strings.ContainsAny(user, "/:") || strings.Contains(tenant, ":"):
		return holdfast.Principal{}, errors.New("tenant and user must be query-escaped: write / as %2F and : as %3A")
	case strings.Contains(s, "+"):
		// Query escaping reads a plus as a space, but people who write an address like
		// a+b@example.com mean a plus. A guess could let one user in as another.
		return holdfast.Principal{}, errors.New("tenant and user must be query-escaped: write + " +
			"as %2B and a space as %20")
	case strings.Contains(s, keyPrefix) && len(s) > keyLength:
		return holdfast.Principal{}, errors.New("this looks like the key itself, which must not be configured; " +
			"write tenant/user:sha256:HEX")
	}
	var principal holdfast.Principal
	var err error
	if principal.Tenant, err = url.QueryUnescape(tenant); err == nil {
		principal.User, err = url.QueryUnescape(user)
	}
	if err != nil {
		// The cause is left out because it quotes the text.
		return holdfast.Principal{}, errors.New("tenant or user is not query-escaped: write % as %25")
	}
	return principal, checkName(principal)
}

func checkName(p holdfast.Principal) error {
	for _, part := range []struct{ what, name string }{{"tenant", p.Tenant}, {"user", p.User}} {
		switch {
		case part.name == "":
			return fmt.Errorf("the %s is empty: write tenant/user, like acme/alice", part.what)
		case len(part.name) > maxName:
			return fmt.Errorf("the %s is longer than %d bytes", part.what, maxName)
		case !utf8.ValidString(part.name) || strings.ContainsFunc(part.name, unicode.IsControl):
			return fmt.Errorf("the %s has control characters or is not UTF-8", part.what)
		}
	}
	return nil
}

// formatName writes what parseName reads.
func formatName(p holdfast.Principal) string {
	return escape(p.Tenant) + "/" + escape(p.User)
}

func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
