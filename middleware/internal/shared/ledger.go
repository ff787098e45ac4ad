// Package shared has the common parts of several kinds of middleware: a ledger's clock,
// accounts, windows of time and errors; patterns of names; JSON in one form; and a pause.
package shared

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/store"
)

// LedgerClock returns the clock for what is counted in the ledger: the given one or, if that is nil,
// the ledger's own, which the servers that share it agree on, or else [time.Now].
func LedgerClock(ledger store.Ledger, given func() time.Time) func() time.Time {
	if given != nil {
		return given
	}
	if c, ok := ledger.(store.Clock); ok {
		return c.Now
	}
	return time.Now
}

// AccountName joins parts to the name of an account or a reservation. Different lists of parts
// have different names. A name that would be too long for a store is replaced by a hash.
func AccountName(parts ...string) string {
	escaped := make([]string, len(parts))
	for i, p := range parts {
		escaped[i] = url.PathEscape(p)
	}
	name := strings.Join(escaped, "/")
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return parts[0] + "/sha256/" + hex.EncodeToString(sum[:])
}

// maxName leaves room for what callers append to a name.
const maxName = store.MaxName - 64

// Window returns the window that contains the time. Windows begin at multiples of their
// length, in UTC: days at midnight, weeks on Monday.
func Window(now time.Time, length time.Duration) (begin, end time.Time) {
	begin = now.UTC().Truncate(length)
	return begin, begin.Add(length)
}

// late is how long after the time that it names a reservation may reach the store: longer than
// anybody here waits for an answer.
const late = time.Minute

// KeptUntil returns when the account of a window is kept. A reservation that comes late would
// find it gone if that were the window's end, and be the first of a window that is full.
func KeptUntil(end time.Time) time.Time { return end.Add(late) }

// Refused reports whether the ledger has refused, so that trying again is no use. Any other
// error is that of a store that did not answer.
func Refused(err error) bool {
	var limit *store.LimitError
	return errors.As(err, &limit) || errors.Is(err, store.ErrInvalid)
}

// Unchecked returns the error of a run that cannot continue until the store answers.
func Unchecked(what string) *holdfast.Error {
	return holdfast.Errorf(codes.StoreUnavailable,
		"The %s could not be checked, because the store does not answer; the model was not called.", what).
		WithHint(`To try again, POST the same threadId with "messages": [] and a new runId.`)
}
