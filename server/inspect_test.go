package server_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/store"
)

// told is a store with a given durability, which records whether it was closed.
type told struct {
	store.Store
	durability store.Durability
	err        error
	closed     bool
}

func (s *told) Durability(context.Context) (store.Durability, error) { return s.durability, s.err }

func (s *told) Close() error {
	s.closed = true
	return s.Store.Close()
}

// opened makes a server with the store, and shuts it down again if that worked.
func opened(t *testing.T, db store.Store, allowEviction bool) (level store.Level, log string, err error) {
	t.Helper()
	var text bytes.Buffer
	c := config(t)
	c.Log = slog.New(slog.NewTextHandler(&text, nil))
	c.OpenStore, c.AllowEviction = func() (store.Store, error) { return db, nil }, allowEviction
	s, err := server.New(c)
	if err != nil {
		return "", text.String(), err
	}
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	return s.Durability(), text.String(), nil
}

// TestInspection: a store's level is kept and its notes are logged as warnings; a
// store that is not Durable is used, but not one whose inspection fails.
func TestInspection(t *testing.T) {
	known := &told{
		Store:      memstore.New(),
		durability: store.Durability{Level: store.LevelMachine, Notes: []string{"mind the gap"}},
	}
	level, log, err := opened(t, known, false)
	if err != nil || level != store.LevelMachine || !strings.Contains(log, "level=WARN") ||
		!strings.Contains(log, "mind the gap") {
		t.Errorf("%q, %v, %s", level, err, log)
	}
	// Embedded as a Store, it is not Durable.
	level, log, err = opened(t, struct{ store.Store }{memstore.New()}, false)
	if err != nil || level != "" || strings.Contains(log, "WARN") {
		t.Errorf("%q, %v, %s", level, err, log)
	}
	lost := &told{Store: memstore.New(), err: errors.New("nobody answers")}
	if _, _, err = opened(t, lost, false); !errors.Is(err, lost.err) || !lost.closed {
		t.Errorf("%v, closed %t", err, lost.closed)
	}
}

// TestEvictingStore: it is refused, and closed, unless eviction is allowed.
func TestEvictingStore(t *testing.T) {
	s := &told{
		Store:      memstore.New(),
		durability: store.Durability{Level: store.LevelProcess, Evicts: true, Policy: "allkeys-lru"},
	}
	_, _, err := opened(t, s, false)
	if err == nil || !s.closed {
		t.Fatalf("%v, closed %t", err, s.closed)
	}
	for _, want := range []string{`"allkeys-lru"`, "CONFIG SET maxmemory-policy noeviction", "--allow-eviction",
		"HOLDFAST_ALLOW_EVICTION"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the text does not say %q: %v", want, err)
		}
	}
	level, log, err := opened(t, s, true)
	if err != nil || level != store.LevelProcess || !strings.Contains(log, "level=WARN") ||
		!strings.Contains(log, "allkeys-lru") {
		t.Errorf("%q, %v, %s", level, err, log)
	}
}
