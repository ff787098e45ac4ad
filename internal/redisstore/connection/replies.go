package connection

// The meaning of errors that Redis answers with: it refuses, is not ready, or lets nobody in.

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast/store"
	"github.com/redis/go-redis/v9"
)

// Refusing is an error that wraps [store.ErrRefused] and has the text of err.
func Refusing(err error) error { return refusing{err} }

// refusing is a [store.ErrRefused] that has the text of Redis.
type refusing struct{ error }

func (refusing) Is(target error) bool { return target == store.ErrRefused }

func (r refusing) Unwrap() error { return r.error }

// NotNow reports whether Redis has answered that it writes nothing at the moment; a node of a
// cluster may also go on to send us to another one while a slot moves. Before Redis 7 what a
// script has met stands inside the text.
func NotNow(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	if redis.IsMaxClientsError(err) {
		return true
	}
	for _, word := range []string{"OOM", "READONLY", "MISCONF", "NOREPLICAS", "LOADING", "MASTERDOWN", "CLUSTERDOWN",
		"TRYAGAIN", "ASK", "MOVED"} {
		if text := reply.Error(); strings.HasPrefix(text, word+" ") || strings.Contains(text, ": -"+word+" ") {
			return true
		}
	}
	return false
}

// WrongType reports whether a key does not have the type that a command expects.
func WrongType(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.Contains(reply.Error(), "WRONGTYPE ")
}

// Brief is err in one line that says nothing twice.
func Brief(err error) error { return brief{err} }

// brief is an error in one line that says nothing twice: with Sentinel, go-redis says of each
// of them why it does not answer.
type brief struct{ error }

func (b brief) Error() string {
	var said []string
	for line := range strings.Lines(b.error.Error()) {
		line = strings.TrimSpace(line)
		if !slices.ContainsFunc(said, func(before string) bool { return strings.HasSuffix(before, line) }) {
			said = append(said, line)
		}
	}
	return strings.Join(said, "; ")
}

func (b brief) Unwrap() error { return b.error }

// Join is [errors.Join] for the errors of one pipeline, whose commands often fail for the
// same reason: each is there once.
func Join(errs ...error) error {
	var said []string
	var all []error
	for _, err := range errs {
		if err == nil {
			continue
		}
		// In a script, Redis appends which one, and where.
		cause, _, _ := strings.Cut(err.Error(), " script: ")
		if !slices.Contains(said, cause) {
			said, all = append(said, cause), append(all, err)
		}
	}
	return errors.Join(all...)
}

// WrongPassword reports whether Redis has refused the password.
func WrongPassword(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	text := reply.Error()
	return strings.HasPrefix(text, "WRONGPASS ") || strings.HasPrefix(text, "NOAUTH ") ||
		strings.HasPrefix(text, "ERR invalid password")
}

// Final reports whether waiting does not help: Redis has answered, and not that it is not
// ready yet, or it is not the server that the address promises.
func Final(err error) bool {
	var certificate *tls.CertificateVerificationError
	var noTLS tls.RecordHeaderError
	if errors.As(err, &certificate) || errors.As(err, &noTLS) {
		return true
	}
	var reply redis.Error
	return errors.As(err, &reply) && !redis.IsLoadingError(err) && !redis.IsMasterDownError(err) &&
		!redis.IsClusterDownError(err) && !redis.IsTryAgainError(err) && !redis.IsMaxClientsError(err)
}

// Forbidden reports whether Redis refuses what was asked, to a user that it has let in.
func Forbidden(err error) bool { return Final(err) && !WrongPassword(err) }

// UnacknowledgedError means that too few replicas have a write in time.
type UnacknowledgedError struct {
	Have, Need int
	Within     time.Duration
}

// Error implements [error].
func (e UnacknowledgedError) Error() string {
	return fmt.Sprintf("only %d of %d replicas have it after %s (durability failover): look whether "+
		"they run and are connected", e.Have, e.Need, e.Within)
}

// NoWaitError means that Redis refuses WAIT.
type NoWaitError struct{ Err error }

// Error implements [error].
func (e NoWaitError) Error() string { return e.Err.Error() }

// Unwrap returns what Redis has answered.
func (e NoWaitError) Unwrap() error { return e.Err }
