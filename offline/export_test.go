package offline_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/offline"
	"github.com/holdfast-agents/holdfast/store"
)

// TestExportThroughStores: a thread is unchanged after moving through every kind of
// store.
func TestExportThroughStores(t *testing.T) {
	redis := redistest.Start(t)
	stores := []store.Store{filled(t, hello, 1)}
	for _, at := range []offline.Location{{URL: t.TempDir() + "/data", Create: true}, {URL: redis.URL()}} {
		store, err := offline.Open(at)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		stores = append(stores, store)
	}
	stores = append(stores, memstore.New())
	var first string
	for i, db := range stores {
		if i > 0 {
			key, err := offline.Import(t.Context(), db, store.ThreadKey{}, strings.NewReader(first))
			if err != nil || key != localKey("t0") {
				t.Fatalf("%s, %v", key, err)
			}
		}
		var text bytes.Buffer
		if err := offline.Export(t.Context(), db, localKey("t0"), &text); err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = text.String()
		}
		if text.String() != first {
			t.Errorf("from store %d:\n%s\nwant\n%s", i, text.String(), first)
		}
		if got, err := offline.Check(t.Context(), db, nil, func(p offline.Problem) { t.Error(p) }); err != nil ||
			got.Threads != 1 {
			t.Errorf("store %d: %+v, %v", i, got, err)
		}
	}
	if _, err := offline.Import(t.Context(), stores[0], store.ThreadKey{}, strings.NewReader(first)); !errors.Is(err,
		store.ErrConflict) {
		t.Errorf("onto itself: %v", err)
	}
	as := store.ThreadKey{Tenant: "other", Thread: "t9"}
	if key, err := offline.Import(t.Context(), stores[0], as, strings.NewReader(first)); err != nil || key != as {
		t.Errorf("under another name: %s, %v", key, err)
	}
}
