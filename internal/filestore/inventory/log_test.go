package inventory_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/filestore"
	"github.com/holdfast-agents/holdfast/internal/filestore/inventory"
	"github.com/holdfast-agents/holdfast/store"
)

// TestDamageInLog: in a log that was not closed, every byte but those of the last commit
// is known to be right or wrong.
func TestDamageInLog(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s, err := filestore.Open(dir, filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for n := range 40 {
		write(t, s, n)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no log, %v", err)
	}
	name := names[0]
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(name), ".log"), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	before, damaged := inventory.DamageInLog(whole, uint32(number), 0)
	if damaged || before < 40*700 {
		t.Fatalf("a log that is being written ends at byte %d of %d, damaged: %t", before, len(whole), damaged)
	}
	write(t, s, 40)
	if whole, err = os.ReadFile(name); err != nil {
		t.Fatal(err)
	}
	end, damaged := inventory.DamageInLog(whole, uint32(number), 0)
	if damaged || end < before+700 {
		t.Fatalf("the next commit ends at byte %d, after %d, damaged: %t", end, before, damaged)
	}
	for at := 0; at < end; at += 11 {
		whole[at] ^= 1
		if _, damaged := inventory.DamageInLog(whole, uint32(number), 0); damaged != (at < before) {
			t.Errorf("byte %d, of a log whose last commit begins at %d: damaged is %t", at, before, damaged)
		}
		whole[at] ^= 1
		if at%7 == 0 {
			if _, damaged := inventory.DamageInLog(whole[:at], uint32(number), 0); damaged {
				t.Errorf("a log that was cut to %d bytes is called damaged", at)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if whole, err = os.ReadFile(name); err != nil {
		t.Fatal(err)
	}
	whole[end-1] ^= 1
	if _, damaged := inventory.DamageInLog(whole, uint32(number), 0); !damaged {
		t.Error("the last commit of a log that was closed is damaged, and was not found")
	}
}

// write makes the commit with this number, from 0, to a thread, with a message of 700 bytes that
// cannot be compressed.
func write(t *testing.T, s *filestore.Store, n int) {
	t.Helper()
	data := make([]byte, 700)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(data)
	key, fence := store.ThreadKey{Tenant: "acme", Thread: "written"}, store.Fence{Epoch: 1, Nonce: "abcdefgh"}
	head := store.Head{Key: key, Next: 1}
	if n > 0 {
		head = store.Head{Key: key, Next: uint64(n) + 1, ETag: fmt.Sprintf("commit-%d", n-1), Fence: fence}
	}
	id := fmt.Sprintf("commit-%d", n)
	err := s.Commit(t.Context(), &store.Commit{
		Key:       key,
		ID:        id,
		Expect:    head.Position(),
		Fence:     fence,
		UpdatedAt: time.Now(),
		Records:   [][]byte{[]byte(id)},
		State:     []byte(id),
		Messages:  []store.Message{{ID: id, Data: data}},
	})
	if err != nil {
		t.Fatal(err)
	}
}
