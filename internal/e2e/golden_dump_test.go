package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/store"
)

// dump is what a store holds, as commits that make any other store hold the same.
type dump struct {
	Commits []store.Commit
	Used    map[string]int64 // by account
}

// readDump reads a store that no server has open. Accounts cannot be listed, so they are
// named.
func readDump(t *testing.T, db store.Store, accounts []string) *dump {
	t.Helper()
	d := &dump{Used: usedOf(t, db, accounts)}
	heads, next, err := db.Walk(t.Context(), "", 1000)
	if err != nil || next != "" {
		t.Fatalf("%d threads, and more: %q, %v", len(heads), next, err)
	}
	parents := map[store.ThreadKey]string{}
	for i := range heads {
		children, err := db.Children(t.Context(), heads[i].Key, "", 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, child := range children {
			parents[store.ThreadKey{Tenant: heads[i].Key.Tenant, Thread: child}] = heads[i].Key.Thread
		}
	}
	for i := range heads {
		d.Commits = append(d.Commits, commitsOf(t, db, heads[i].Key, parents[heads[i].Key])...)
	}
	return d
}

// commitsOf are commits that make a thread what it is. Its fences are known only by their
// tags, except the head's.
func commitsOf(t *testing.T, db store.Store, key store.ThreadKey, parent string) (commits []store.Commit) {
	t.Helper()
	head, err := db.Head(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	records, err := db.Records(t.Context(), key, store.Cursor{}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	at := store.Position{Next: 1}
	add := func(fence store.Fence) *store.Commit {
		commits = append(commits, store.Commit{
			Key:       key,
			ID:        fmt.Sprintf("golden-%d", len(commits)),
			Expect:    at,
			User:      head.User,
			Fence:     fence,
			UpdatedAt: head.UpdatedAt,
		})
		return &commits[len(commits)-1]
	}
	done := func(c *store.Commit) {
		at = store.Position{Fence: c.Fence, Next: c.Expect.Next + uint64(len(c.Records)), ETag: c.ID}
	}
	first := head.Next
	if len(records) > 0 {
		first = records[0].Number
	}
	c := add(store.Fence{Epoch: 1, Nonce: "trimmed"})
	c.Parent = parent
	for range first - 1 {
		c.Records = append(c.Records, []byte("{}"))
	}
	done(c)
	for n := 0; n < len(records); {
		fence := store.Fence{Epoch: 1, Nonce: records[n].Tag}
		if fence.Tag() == head.Fence.Tag() {
			fence = head.Fence
		}
		c := add(fence)
		for ; n < len(records) && records[n].Tag == fence.Tag(); n++ {
			c.Records = append(c.Records, records[n].Data)
		}
		done(c)
	}
	c = add(head.Fence)
	c.ID, c.Process, c.State, c.Trim = head.ETag, head.Process, head.State, first-1
	if c.Messages, err = db.Messages(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	for _, kind := range store.Kinds() {
		values, err := db.Values(t.Context(), key, kind, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		c.Put = append(c.Put, values...)
	}
	return commits
}

// replay has a store hold what was dumped.
func (d *dump) replay(t *testing.T, db store.Store) {
	t.Helper()
	for i := range d.Commits {
		if err := db.Commit(t.Context(), &d.Commits[i]); err != nil {
			t.Fatal(err)
		}
	}
	for account, n := range d.Used {
		err := db.Reserve(t.Context(), &store.Reservation{
			Tenant:  "default",
			ID:      "golden-" + account,
			Entries: []store.Entry{{Account: account, Amount: n}},
			Now:     time.Now(),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Settle(t.Context(), "default", "golden-"+account, map[string]int64{account: n}); err != nil {
			t.Fatal(err)
		}
	}
}

// write writes the dump to a file that is not there.
func (d *dump) write(t *testing.T, name string) {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	enc := json.NewEncoder(z)
	for i := range d.Commits {
		if err := enc.Encode(&d.Commits[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := enc.Encode(d.Used); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) // golden data never changes
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(b.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// loadDump reads a file that write has written.
func loadDump(t *testing.T, name string) *dump {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	d := &dump{}
	for dec := json.NewDecoder(z); ; {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err == io.EOF {
			return d
		} else if err != nil {
			t.Fatal(err)
		}
		var c store.Commit
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		if c.ID != "" {
			d.Commits = append(d.Commits, c)
		} else if err := json.Unmarshal(raw, &d.Used); err != nil {
			t.Fatal(err)
		}
	}
}
