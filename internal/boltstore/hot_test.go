package boltstore

import (
	"bytes"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

func FuzzHot(f *testing.F) {
	f.Add(uint64(1), uint64(0), int64(-1), uint32(999_999_999), "nonce", "process", "etag", "user")
	f.Add(uint64(1<<63), uint64(1<<64-1), int64(-62135596800), uint32(0), "", "\x00", "\xff", "日本語")
	f.Fuzz(func(t *testing.T, next, count uint64, seconds int64, nanos uint32, nonce, process, etag, user string) {
		h := hot{Head: store.Head{
			User: user, Fence: store.Fence{Epoch: count, Nonce: nonce}, Process: process, ETag: etag, Next: next,
			UpdatedAt: time.Unix(seconds, int64(nanos%1e9)).UTC(),
		}, messages: count / 2, posted: count / 3}
		got, err := decodeHot(h.encode())
		if err != nil || !bytes.Equal(got.encode(), h.encode()) || !got.UpdatedAt.Equal(h.UpdatedAt) || got.User != user {
			t.Errorf("%+v came back as %+v, %v", h, got, err)
		}
	})
}

// FuzzHotGarbage: a damaged head is an error, nothing worse.
func FuzzHotGarbage(f *testing.F) {
	f.Add([]byte(nil))
	f.Add((&hot{Head: store.Head{ETag: "etag", Next: 1}}).encode())
	f.Add(bytes.Repeat([]byte{0xff}, 40))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := decodeHot(data); err != nil {
			return
		}
		if _, err := decodeHot(data[:0]); err == nil {
			t.Error("nothing was decoded to a head")
		}
	})
}

// FuzzNames: keys of different names are different, and none is in another's
// range.
func FuzzNames(f *testing.F) {
	f.Add("a", "b/c", "a/b", "c")
	f.Add("", "\x01a", "\x01", "a")
	f.Fuzz(func(t *testing.T, a1, a2, b1, b2 string) {
		same := a1 == b1 && a2 == b2
		if got := bytes.Equal(nameKey(store.ThreadKey{Tenant: a1, Thread: a2}), nameKey(store.ThreadKey{Tenant: b1, Thread: b2})); got != same {
			t.Errorf("threads %q/%q and %q/%q have the same key: %v", a1, a2, b1, b2, got)
		}
		if got := bytes.Equal(valueKey(7, store.Kind(a1), a2), valueKey(7, store.Kind(b1), b2)); got != same {
			t.Errorf("values %q %q and %q %q have the same key: %v", a1, a2, b1, b2, got)
		}
		one, other := activePrefix(holdfast.Principal{Tenant: a1, User: a2}), activePrefix(holdfast.Principal{Tenant: b1, User: b2})
		if bytes.HasPrefix(other, one) && !same {
			t.Errorf("the threads of %q %q are among those of %q %q", b1, b2, a1, a2)
		}
		if end := after(one); bytes.Compare(activeKey(holdfast.Principal{Tenant: a1, User: a2}, 1<<62, 1<<63), end) >= 0 {
			t.Errorf("the threads of %q %q do not end before %q", a1, a2, end)
		}
	})
}
