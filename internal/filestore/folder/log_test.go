package folder_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/filestore"
	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
	"github.com/holdfast-agents/holdfast/store"
)

// TestDamageInLog: in a log that was not closed, every byte but those of the last commit
// is known to be right or wrong.
func TestDamageInLog(t *testing.T) {
	t.Parallel()
	s, dir := openFolder(t)
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
	before, damaged := folder.DamageInLog(whole, uint32(number), 0)
	if damaged || before < 40*700 {
		t.Fatalf("a log that is being written ends at byte %d of %d, damaged: %t", before, len(whole), damaged)
	}
	write(t, s, 40)
	if whole, err = os.ReadFile(name); err != nil {
		t.Fatal(err)
	}
	end, damaged := folder.DamageInLog(whole, uint32(number), 0)
	if damaged || end < before+700 {
		t.Fatalf("the next commit ends at byte %d, after %d, damaged: %t", end, before, damaged)
	}
	for at := 0; at < end; at += 11 {
		whole[at] ^= 1
		if _, damaged := folder.DamageInLog(whole, uint32(number), 0); damaged != (at < before) {
			t.Errorf("byte %d, of a log whose last commit begins at %d: damaged is %t", at, before, damaged)
		}
		whole[at] ^= 1
		if at%7 == 0 {
			if _, damaged := folder.DamageInLog(whole[:at], uint32(number), 0); damaged {
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
	if _, damaged := folder.DamageInLog(whole, uint32(number), 0); !damaged {
		t.Error("the last commit of a log that was closed is damaged, and was not found")
	}
}

// TestTrailerInData: the key of a section of thread 5 has the bytes of the first log's trailer. A
// commit with them that was partly written is no damage, and damage to it in a closed log is.
func TestTrailerInData(t *testing.T) {
	t.Parallel()
	s, dir := openFolder(t)
	for n := range 4 {
		create(t, s, n)
	}
	const number = 2
	name := filepath.Join(dir, "000002.log")
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	begin, _ := folder.DamageInLog(whole, number, 0)
	create(t, s, 4)
	if whole, err = os.ReadFile(name); err != nil {
		t.Fatal(err)
	}
	end, _ := folder.DamageInLog(whole, number, 0)
	if trailer := []byte{0, 0, 0, 0, 0, 0, 5, 3, 0, 0, 0}; !bytes.Contains(whole[begin:end], trailer) {
		t.Fatalf("the commit from byte %d to %d does not have the bytes of a trailer", begin, end)
	}
	for cut := begin; cut < end; cut++ {
		if at, damaged := folder.DamageInLog(whole[:cut], number, 0); damaged {
			t.Errorf("a log that was cut to %d bytes is called damaged at byte %d", cut, at)
		}
		late := bytes.Clone(whole[:end]) // of its pages, the first ones were not written
		clear(late[begin:cut])
		if at, damaged := folder.DamageInLog(late, number, 0); damaged {
			t.Errorf("a last commit that was not written up to byte %d is called damage at byte %d", cut, at)
		}
		if cut < begin+19 {
			continue // without its header, nothing says how long the commit is
		}
		torn := append(bytes.Clone(whole[:cut-1]), whole[cut-1]^1)
		torn = append(torn, whole[cut:end]...)
		if at, damaged := folder.DamageInLog(torn, number, 0); damaged {
			t.Errorf("a last commit in which byte %d was not written is called damage at byte %d", cut-1, at)
		}
	}
	old := bytes.Clone(whole[:end]) // of an older log, in whose file this one is
	binary.LittleEndian.PutUint32(old[begin+7:], number-1)
	if at, damaged := folder.DamageInLog(old, number, 0); damaged {
		t.Errorf("what is left of an older log is called damage at byte %d", at)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if whole, err = os.ReadFile(name); err != nil {
		t.Fatal(err)
	}
	for bit := begin * 8; bit < end*8; bit++ {
		whole[bit/8] ^= 1 << (bit % 8)
		if _, damaged := folder.DamageInLog(whole, number, 0); !damaged {
			t.Errorf("bit %d of byte %d of a closed log's last commit is damaged, and was not found", bit%8, bit/8)
		}
		whole[bit/8] ^= 1 << (bit % 8)
	}
}

// openFolder opens a store in a new folder.
func openFolder(t *testing.T) (s *filestore.Store, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	s, err := filestore.Open(dir, filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, dir
}

// create makes the first commit of the thread with this number, with a message of 700 bytes that
// cannot be compressed.
func create(t *testing.T, s *filestore.Store, n int) {
	t.Helper()
	commit(t, s, store.Head{Key: store.ThreadKey{Tenant: "acme", Thread: fmt.Sprintf("thread-%d", n)}, Next: 1}, n)
}

// write makes the commit with this number, from 0, to a thread, with a message of 700 bytes that
// cannot be compressed.
func write(t *testing.T, s *filestore.Store, n int) {
	t.Helper()
	key, fence := store.ThreadKey{Tenant: "acme", Thread: "written"}, store.Fence{Epoch: 1, Nonce: "abcdefgh"}
	head := store.Head{Key: key, Next: 1}
	if n > 0 {
		head = store.Head{Key: key, Next: uint64(n) + 1, ETag: fmt.Sprintf("commit-%d", n-1), Fence: fence}
	}
	commit(t, s, head, n)
}

// commit makes the commit with this number behind a head.
func commit(t *testing.T, s *filestore.Store, head store.Head, n int) {
	t.Helper()
	data := make([]byte, 700)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(data)
	id := fmt.Sprintf("commit-%d", n)
	err := s.Commit(t.Context(), &store.Commit{
		Key:       head.Key,
		ID:        id,
		Expect:    head.Position(),
		Fence:     store.Fence{Epoch: 1, Nonce: "abcdefgh"},
		UpdatedAt: time.Now(),
		Records:   [][]byte{[]byte(id)},
		State:     []byte(id),
		Messages:  []store.Message{{ID: id, Data: data}},
	})
	if err != nil {
		t.Fatal(err)
	}
}
