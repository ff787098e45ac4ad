package jwtauth

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4/jwt"
)

// claimSet are the claims of a token.
type claimSet map[string]json.RawMessage

// find returns a claim: the one of that name or, if there is none, the one at the path
// that the dots of the name describe ("realm_access.roles"). A name may be a URL, which
// has dots itself. null counts as absent.
func (c claimSet) find(name string) (json.RawMessage, bool) {
	if value, ok := c[name]; ok {
		return value, string(value) != "null"
	}
	first, rest, deeper := strings.Cut(name, ".")
	value, ok := c[first]
	if !deeper || !ok {
		return nil, false
	}
	var inner claimSet
	if json.Unmarshal(value, &inner) != nil {
		return nil, false
	}
	return inner.find(rest)
}

// text returns a claim that must be a text.
func (c claimSet) text(name string) (string, error) {
	value, ok := c.find(name)
	if !ok {
		return "", fmt.Errorf("the token has no claim %q", name)
	}
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return "", fmt.Errorf("the claim %q is not a text", name)
	}
	return text, nil
}

// list returns a claim that is a list of texts, or a text with spaces between its parts.
func (c claimSet) list(name string) (list []string, given bool, err error) {
	value, ok := c.find(name)
	if !ok {
		return nil, false, nil
	}
	var text string
	if json.Unmarshal(value, &text) == nil {
		return strings.Fields(text), true, nil
	}
	if err := json.Unmarshal(value, &list); err != nil {
		return nil, true, fmt.Errorf("the claim %q is not a list of texts", name)
	}
	return list, true, nil
}

// time returns a claim that is a time.
func (c claimSet) time(name string) (time.Time, error) {
	var seconds jwt.NumericDate
	if err := json.Unmarshal(c[name], &seconds); err != nil {
		return time.Time{}, fmt.Errorf("the claim %q is not a time: %w", name, err)
	}
	return seconds.Time(), nil
}

// checkName refuses what cannot be a tenant's or a user's name.
func checkName(what, name string) error {
	switch {
	case name == "":
		return errors.New("the " + what + " is empty")
	case len(name) > maxName:
		return fmt.Errorf("the %s is longer than %d bytes", what, maxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("the %s has control characters or is not UTF-8", what)
	}
	return nil
}
