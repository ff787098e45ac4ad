package thread

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/holdfast-agents/holdfast/store"
)

// The token of a one-time URL says which call it is for, so that any process can find it,
// and has a random part that only who was given the URL can know.

// tokenPrefix is how a token is recognized, by people and by those who search for secrets.
const tokenPrefix = "hfc_"

// maxToken bounds a token: three ids of 256 bytes and the random part.
const maxToken = 2 << 10

// errToken means that a text is no token.
var errToken = errors.New("this is no token")

// NewToken returns the token of a call. secret is random.
func NewToken(key store.ThreadKey, call, secret string) string {
	var b []byte
	for _, part := range []string{key.Tenant, key.Thread, call} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(b) + "." + secret
}

// ParseToken returns which call a token is for. That the token is right is not said: see
// TokenMatches.
func ParseToken(token string) (key store.ThreadKey, call string, err error) {
	rest, ok := strings.CutPrefix(token, tokenPrefix)
	place, secret, whole := strings.Cut(rest, ".")
	if !ok || !whole || secret == "" || len(token) > maxToken {
		return key, "", errToken
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(place)
	if err != nil {
		return key, "", errToken
	}
	var parts [3]string
	for i := range parts {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return key, "", errToken
		}
		parts[i], b = string(b[size:size+int(n)]), b[size+int(n):]
	}
	if len(b) > 0 {
		return key, "", errToken
	}
	return store.ThreadKey{Tenant: parts[0], Thread: parts[1]}, parts[2], nil
}

// TokenHash returns what is stored of a token.
func TokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// TokenMatches reports whether one of the hashes is the token's. How long it takes does not
// depend on how much of a token is right.
func TokenMatches(hashes []string, token string) bool {
	hash, found := []byte(TokenHash(token)), 0
	for _, h := range hashes {
		found |= subtle.ConstantTimeCompare([]byte(h), hash)
	}
	return found == 1
}
