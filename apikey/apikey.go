// Package apikey identifies callers by the API key of the request.
//
// Keys are never configured and never stored: an operator configures the SHA-256 of
// each. A fast hash is right here because a key is 160 random bits ([New]): nobody
// can guess it, so nothing has to be slow. For passwords, which people choose, a fast
// hash would be wrong.
//
// [New] makes a key and its entry, [Parse] reads a list of entries, and [Keys.Authenticate]
// is what server.Config.Authenticate takes.
package apikey

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

// maxToken bounds how many bytes are hashed for a caller that is not known yet.
const maxToken = 512

// digest is the SHA-256 of a key.
type digest = [sha256.Size]byte

// indexLength is how many bytes of a digest are used to find its candidates.
const indexLength = 8

// Keys are the configured API keys. It is read-only and safe for concurrent
// use.
type Keys struct {
	// byIndex finds candidates by the first bytes of the digest; the whole digest is
	// then compared in constant time. The time of the lookup can reveal a few bytes of
	// a digest, from which nobody can compute the key. Comparing with every key instead
	// would reveal nothing, but would cost each request more with each key.
	byIndex map[[indexLength]byte][]entry
	count   int
}

type entry struct {
	digest    digest
	principal holdfast.Principal
	// where identifies the entry in messages.
	where string
}

// Len returns the number of keys.
func (k *Keys) Len() int { return k.count }

// Authenticate returns who sent r, by its header "Authorization: Bearer KEY" (RFC
// 6750; the case of the scheme does not matter). The error has the code
// unauthenticated. It distinguishes a missing key from a wrong one, but not an unknown
// key from a malformed one, and never contains the key.
func (k *Keys) Authenticate(r *http.Request) (holdfast.Principal, error) {
	headers := r.Header.Values("Authorization")
	if len(headers) == 0 {
		return holdfast.Principal{}, holdfast.Errorf(codes.Unauthenticated, "This server needs an API key.").
			WithHint("Send the header Authorization: Bearer YOUR_KEY. The operator of the server makes keys with: holdfast key --tenant TENANT --user USER")
	}
	if token, ok := bearer(headers); ok {
		if principal, known := k.lookup(sha256.Sum256([]byte(token))); known {
			return principal, nil
		}
	}
	return holdfast.Principal{}, holdfast.Errorf(codes.Unauthenticated, "The API key is not valid.").
		WithHint("Send the whole key, without quotes, as Authorization: Bearer YOUR_KEY. If it was replaced, ask the operator of the server for the new one.")
}

// bearer returns the token of the one Authorization header.
func bearer(headers []string) (string, bool) {
	// Along the way, two headers could be read as two different callers.
	if len(headers) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	token = strings.Trim(token, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxToken {
		return "", false
	}
	return token, true
}

// lookup compares with every candidate, even after it has found a match, so that the
// time does not depend on which candidate matches.
func (k *Keys) lookup(d digest) (holdfast.Principal, bool) {
	var principal holdfast.Principal
	known := false
	for _, e := range k.byIndex[[indexLength]byte(d[:indexLength])] {
		if subtle.ConstantTimeCompare(e.digest[:], d[:]) == 1 {
			principal, known = e.principal, true
		}
	}
	return principal, known
}
