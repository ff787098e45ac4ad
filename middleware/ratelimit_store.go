package middleware

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// ledgerName joins parts to the name of an account or a reservation, so that no two
// lists of parts have one name. One that is too long for a store is hashed.
func ledgerName(parts ...string) string {
	escaped := make([]string, len(parts))
	for i, p := range parts {
		escaped[i] = url.PathEscape(p)
	}
	name := strings.Join(escaped, "/")
	if len(name) <= maxLedgerName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return parts[0] + "/sha256/" + hex.EncodeToString(sum[:])
}

// maxLedgerName leaves room for what is added to a name.
const maxLedgerName = holdfast.MaxName - 64

// windowAt returns the window that the time is in. Windows begin at multiples of
// their length, in UTC: days at midnight, weeks on Monday.
func windowAt(now time.Time, length time.Duration) (begin, end time.Time) {
	begin = now.UTC().Truncate(length)
	return begin, begin.Add(length)
}

// refusedByLedger reports whether the ledger has answered with a no, which another
// try does not change. Any other error is of a store that did not answer.
func refusedByLedger(err error) bool {
	var limit *holdfast.LimitError
	return errors.As(err, &limit) || errors.Is(err, holdfast.ErrInvalid)
}

// pauseFor waits, unless the context is done before.
func pauseFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
