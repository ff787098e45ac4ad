package storetest

import (
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/store"
)

// expect compares two things as texts, in which nil and empty are the same.
func expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if g, w := show(got), show(want); g != w {
		t.Errorf("%s: got %.300s, want %.300s", what, g, w)
	}
}

// show returns a text; equal texts mean equal things.
func show(v any) string {
	switch v := v.(type) {
	case int:
		return fmt.Sprint(v)
	case []byte:
		return brief(v)
	case []any:
		return join(v, show)
	case []store.Record:
		// fmt would leave out the data, because a record embeds a cursor, and with it a
		// String method.
		return join(v, func(r store.Record) string { return fmt.Sprintf("%d %q %s", r.Number, r.Tag, brief(r.Data)) })
	case []store.Message:
		return join(v, func(m store.Message) string { return fmt.Sprintf("%q %q %s", m.ID, m.Parent, brief(m.Data)) })
	case []store.Value:
		return join(v, func(x store.Value) string { return fmt.Sprintf("%q %q %s", x.Kind, x.ID, brief(x.Data)) })
	case []store.InboxItem:
		return join(v, func(it store.InboxItem) string {
			return fmt.Sprintf("%d %q %s", it.Number, it.ID, brief(it.Data))
		})
	default:
		return fmt.Sprintf("%q", v)
	}
}

// join returns the texts of a list's members as one.
func join[T any](list []T, each func(T) string) string {
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = each(v)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// brief returns data as a text: large data by its beginning, length and checksum.
func brief(b []byte) string {
	const limit = 64
	if len(b) <= limit {
		return fmt.Sprintf("%q", b)
	}
	return fmt.Sprintf("%q… (%d bytes, CRC %x)", b[:limit/4], len(b), crc32.ChecksumIEEE(b))
}

// must returns a function that returns the value, or ends the test if there is an error.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		return v
	}
}

// wantError checks that the error is the wanted one, or wraps it.
func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error is %v, want one that is %q", err, want)
	}
}
