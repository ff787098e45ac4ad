package jwtauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

// The provider's keys: fetched when a token needs them, kept for a while, and kept longer
// if the provider cannot be reached. Tokens with invented key ids must not make the server
// fetch again and again.

const (
	fetchTimeout = 5 * time.Second
	// refreshAfter is how old keys are before they are fetched again, so that a key that
	// the provider has withdrawn is not trusted for long.
	refreshAfter = 10 * time.Minute
	// retryAfter is the least time between two attempts, if the first one failed.
	retryAfter = 30 * time.Second
	// missingAfter is that time if the first one succeeded and a key is missing: the provider
	// may have a new key by now, and must not be asked by every token with an invented id.
	missingAfter = 5 * time.Second
	// trustFor is how long keys are trusted while the provider cannot be reached.
	trustFor = 24 * time.Hour
	// maxSet bounds the provider's answer, in bytes.
	maxSet = 1 << 20
)

// keySet is the set of keys at a URL.
type keySet struct {
	url    string
	client *http.Client
	log    *slog.Logger
	now    func() time.Time

	current atomic.Pointer[fetched]

	mu     sync.Mutex // held while keys are fetched
	tried  time.Time  // when that was begun last
	failed error      // why it failed last
}

// fetched are keys, and when they were fetched.
type fetched struct {
	keys []jose.JSONWebKey
	at   time.Time
}

// find returns the keys with which a token may be signed. None is no error: the token is
// not valid.
func (s *keySet) find(ctx context.Context, id, algorithm string) ([]any, error) {
	f := s.current.Load()
	if f == nil || s.now().Sub(f.at) >= refreshAfter || len(f.matching(id, algorithm)) == 0 {
		f = s.refreshed(ctx, f, id, algorithm)
	}
	if f == nil || s.now().Sub(f.at) >= trustFor {
		s.mu.Lock()
		defer s.mu.Unlock()
		return nil, holdfast.Errorf(codes.AuthUnavailable,
			"Tokens cannot be checked, because the keys of the identity provider cannot be fetched.").
			WithHint("Try again in a while; the server's log has the cause.").
			Wrap(s.failed)
	}
	return f.matching(id, algorithm), nil
}

// refreshed fetches the keys again, unless that has just been done, and returns the newest. A
// request whose key is known does not wait for somebody else's attempt.
func (s *keySet) refreshed(ctx context.Context, f *fetched, id, algorithm string) *fetched {
	if f != nil && len(f.matching(id, algorithm)) > 0 {
		if !s.mu.TryLock() {
			return f
		}
	} else {
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	if newer := s.current.Load(); newer != f {
		return newer
	}
	wait := missingAfter
	if s.failed != nil {
		wait = retryAfter
	}
	if !s.tried.IsZero() && s.now().Sub(s.tried) < wait {
		return f
	}
	s.tried = s.now()
	// Others need the keys too, so that the client goes away does not matter.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	keys, err := s.fetch(ctx)
	if s.failed = err; err != nil {
		s.log.Warn("the keys of the identity provider could not be fetched", "url", s.url, "error", err)
		return f
	}
	f = &fetched{keys: keys, at: s.now()}
	s.current.Store(f)
	return f
}

// fetch gets the set. Keys that no token can be signed with are left out.
func (s *keySet) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	res, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	// The body is read to its end or given up, so that a failed close loses nothing.
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the provider answered %s", res.Status)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxSet+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxSet {
		return nil, fmt.Errorf("the set is larger than %d bytes", maxSet)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("the answer is not a set of keys (RFC 7517): %w", err)
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		// A key of a kind that is not known does not spoil the others (RFC 7517, 5).
		if json.Unmarshal(raw, &key) == nil && usable(&key) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the set has no key for signatures")
	}
	return keys, nil
}

// usable reports whether a key is a public one, large enough, for signatures.
func usable(k *jose.JSONWebKey) bool {
	if k.Use != "" && k.Use != "sig" {
		return false
	}
	switch public := k.Key.(type) {
	case *rsa.PublicKey:
		return public.N.BitLen() >= 2048
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false
}

// matching returns the keys with an id, or all for a token that names none, except those
// of other algorithms.
func (f *fetched) matching(id, algorithm string) (keys []any) {
	for i := range f.keys {
		k := &f.keys[i]
		if (id == "" || k.KeyID == id) && (k.Algorithm == "" || k.Algorithm == algorithm) {
			keys = append(keys, k.Key)
		}
	}
	return keys
}
