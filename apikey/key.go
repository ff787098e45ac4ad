package apikey

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/holdfast-agents/holdfast"
)

// keyPrefix makes our keys easy to recognize for people and for scanners that look for
// secrets in code.
const keyPrefix = "hf_"

// keyBytes are the random bytes of a key: 160 bits, 32 characters in base32.
const keyBytes = 20

const keyLength = len(keyPrefix) + keyBytes*8/5

// New makes a key for a user, and the entry for [Parse] (or HOLDFAST_API_KEYS) that
// accepts it. Outside of tests, random must be crypto/rand.Reader. The key is not kept
// anywhere; the caller must store it. The error says what is wrong with the names, or
// that random failed.
func New(random io.Reader, tenant, user string) (key, entry string, err error) {
	return NewFor(random, holdfast.Principal{Tenant: tenant, User: user})
}

// NewFor is [New] with the rights of the key: its roles, agents and expiry. nil rights are
// those of a user.
func NewFor(random io.Reader, who holdfast.Principal) (key, entry string, err error) {
	if err := errors.Join(checkName(who), checkRights(who.Rights)); err != nil {
		return "", "", err
	}
	var b [keyBytes]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", "", fmt.Errorf("read random bytes for a key: %w", err)
	}
	key = keyPrefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
	sum := sha256.Sum256([]byte(key))
	return key, formatName(who) + formatRights(who.Rights) + separator + hex.EncodeToString(sum[:]), nil
}
