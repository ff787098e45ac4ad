package thread

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"io"

	"github.com/holdfast-agents/holdfast/store"
)

// Clients choose the ids of threads and runs, and models those of calls, so that none of them
// is unique: two tenants have threads of one name, and so has one tenant before and after it
// deletes a thread. Unique values are therefore derived from the thread's incarnation too,
// which is random and made with the thread.

// keyText writes a hash as an idempotency key, which fits into any header.
var keyText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// CallKey returns the idempotency key of a call of the thread, whose key and user are
// given. It stays the same when the call runs again, in a resumed run or after a takeover.
// A call that came with a fork has the key under which it was first made. With arguments that
// a person has chosen it is another call to the services that it uses: they may have carried
// out the model's before the thread went back to the question.
func (s *State) CallKey(thread store.ThreadKey, user string, call *Call) string {
	key := s.madeUnder(thread, user, call)
	if call.Edited != "" {
		key = keyOf(key, call.Edited)
	}
	return key
}

// madeUnder returns the key of the call with the arguments that the model wrote.
func (s *State) madeUnder(thread store.ThreadKey, user string, call *Call) string {
	if call.Key != "" {
		return call.Key
	}
	return keyOf(thread.Tenant, user, thread.Thread, s.Incarnation, call.Run, call.ID)
}

// keyOf returns the key that is derived from the parts.
func keyOf(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		// With its length in front, no part can pass for the end of another one.
		_ = binary.Write(h, binary.BigEndian, uint64(len(part)))
		_, _ = io.WriteString(h, part)
	}
	return keyText.EncodeToString(h.Sum(nil))
}

// Incarnate gives the thread an incarnation: a new thread its first, or a fork its own. The
// open calls keep the keys that they have in the thread of that key and user.
func (s *State) Incarnate(thread store.ThreadKey, user, incarnation string) {
	if s.Incarnation == incarnation {
		return
	}
	s.KeepKeys(thread, user)
	s.Incarnation = incarnation
}

// KeepKeys writes down the keys of the open calls, because the thread's name or
// incarnation is about to change.
func (s *State) KeepKeys(thread store.ThreadKey, user string) {
	for i := range s.Calls {
		c := &s.Calls[i]
		c.Key = s.madeUnder(thread, user, c)
	}
}
