package folder

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-agents/holdfast/store"
)

// TestInventoryText: what is written is read, and what is damaged is not.
func TestInventoryText(t *testing.T) {
	t.Parallel()
	in := newInventory()
	in.next, in.firstLog = 20, 7
	in.manifests[6] = extent{length: 127, sum: 0xfedcba98}
	in.logs[7], in.logs[9] = 12345, 0
	in.tables[5], in.tables[8] = 6, unused
	text := in.encode()
	got, err := decodeInventory(text)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(in) {
		t.Errorf("got %v, %v; want %v", got, err, in)
	}
	for at := range text {
		broken := []byte(string(text))
		broken[at] ^= 4
		for _, b := range [][]byte{broken, text[:at]} {
			if _, err := decodeInventory(b); !errors.Is(err, store.ErrUnreadable) {
				t.Errorf("damaged at byte %d: %v", at, err)
			}
		}
	}
}

// FuzzManifest: no text makes the reader of manifests fail in another way, and it never takes
// in more than there is.
func FuzzManifest(f *testing.F) {
	dir := f.TempDir()
	db, err := pebble.Open(dir, &pebble.Options{FormatMajorVersion: pebble.FormatTableFormatV6})
	if err != nil {
		f.Fatal(err)
	}
	defer db.Close()
	for _, key := range []string{"a", "b", "c"} {
		if err := db.Set([]byte(key), make([]byte, 100), pebble.Sync); err != nil {
			f.Fatal(err)
		}
	}
	if err := db.Flush(); err != nil {
		f.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "MANIFEST*"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, uint16(10))
	}
	f.Fuzz(func(t *testing.T, text []byte, cut uint16) {
		var once, parts manifest
		err := once.take(text)
		at := min(int(cut), len(text))
		err2 := parts.take(text[:at])
		if err2 == nil {
			err2 = parts.take(text[at:])
		}
		if (err == nil) != (err2 == nil) || once.length != parts.length || once.sum != parts.sum ||
			!maps.Equal(once.levels, parts.levels) {
			t.Errorf("in one piece: %v, %v; in two: %v, %v", &once, err, &parts, err2)
		}
		if once.length > int64(len(text)) {
			t.Errorf("%d bytes of %d were taken in", once.length, len(text))
		}
	})
}

// FuzzInventory: what can be read is written as it was.
func FuzzInventory(f *testing.F) {
	in := newInventory()
	in.manifests[6], in.logs[7], in.tables[5] = extent{length: 127, sum: 1}, 5, 6
	f.Add(in.encode())
	f.Fuzz(func(t *testing.T, text []byte) {
		in, err := decodeInventory(text)
		if err != nil {
			return
		}
		again, err := decodeInventory(in.encode())
		if err != nil || fmt.Sprint(again) != fmt.Sprint(in) {
			t.Errorf("%v became %v, %v", in, again, err)
		}
	})
}
