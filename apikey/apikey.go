// Package apikey identifies callers by the API key of the request.
//
// Keys are never configured and never stored: an operator configures the SHA-256 of
// each. A fast hash is right here because a key is 160 random bits ([New]): nobody
// can guess it, so nothing has to be slow. For passwords, which people choose, a fast
// hash would be wrong.
//
// [New] makes a key and its entry, [Parse] reads a list of entries, [Keys.Authenticate]
// is what server.Config.Authenticate takes, and [Keys.Reload] reads the list again.
package apikey

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/headers"
)

// maxToken bounds how many bytes are hashed for a caller that is not known yet.
const maxToken = 512

// digest is the SHA-256 of a key.
type digest = [sha256.Size]byte

// indexLength is how many bytes of a digest are used to find its candidates.
const indexLength = 8

// Keys are the configured API keys. They are safe for concurrent use.
type Keys struct {
	// text and readFile are what Parse was called with, for Reload.
	text     string
	readFile func(path string) ([]byte, error)
	// besideTokens: callers may be of tenants that are not in the list.
	besideTokens bool
	current      atomic.Pointer[table]
	reload       sync.Mutex // one Reload at a time
}

// table is a list of keys as it was read. It is read-only.
type table struct {
	// byIndex finds candidates by the first bytes of the digest; the whole digest is
	// then compared in constant time. The time of the lookup can reveal a few bytes of
	// a digest, from which nobody can compute the key. Comparing with every key instead
	// would reveal nothing, but would cost each request more with each key.
	byIndex map[[indexLength]byte][]*entry
	count   int
}

// entry is one key.
type entry struct {
	digest    digest
	principal holdfast.Principal
	// revoke ends the context of the principal's rights.
	revoke func()
	// where identifies the entry in messages.
	where string
}

// Len returns the number of keys.
func (k *Keys) Len() int { return k.current.Load().count }

// Authenticate returns who sent r, by its header "Authorization: Bearer KEY" (RFC
// 6750; the case of the scheme does not matter), with the rights of the key. The error has
// the code unauthenticated. It distinguishes a missing and an expired key from a wrong
// one, but not an unknown key from a malformed one, and never contains the key.
func (k *Keys) Authenticate(r *http.Request) (holdfast.Principal, error) {
	if len(r.Header.Values("Authorization")) == 0 {
		return holdfast.Principal{}, holdfast.Errorf(codes.Unauthenticated, "This server needs an API key.").
			WithHint("Send the header Authorization: Bearer YOUR_KEY. The operator of the server makes keys with: " +
				"holdfast key --tenant TENANT --user USER")
	}
	token, ok := headers.BearerToken(r, maxToken)
	if ok {
		principal, known := k.current.Load().lookup(sha256.Sum256([]byte(token)))
		switch {
		case known && expired(principal):
			return holdfast.Principal{}, holdfast.Errorf(codes.Unauthenticated, "The API key has expired.").
				WithHint("Ask the operator of the server for a new one, and send it as Authorization: Bearer YOUR_KEY.")
		case known:
			return principal, nil
		}
	}
	return holdfast.Principal{}, holdfast.Errorf(codes.Unauthenticated, "The API key is not valid.").
		WithHint("Send the whole key, without quotes, as Authorization: Bearer YOUR_KEY. If it was replaced, ask the " +
			"operator of the server for the new one.")
}

func expired(p holdfast.Principal) bool {
	return !p.Rights.Expires.IsZero() && !time.Now().Before(p.Rights.Expires)
}

// lookup compares with every candidate, even after it has found a match, so that the
// time does not depend on which candidate matches.
func (t *table) lookup(d digest) (holdfast.Principal, bool) {
	var principal holdfast.Principal
	known := false
	for _, e := range t.byIndex[[indexLength]byte(d[:indexLength])] {
		if subtle.ConstantTimeCompare(e.digest[:], d[:]) == 1 {
			principal, known = e.principal, true
		}
	}
	return principal, known
}
