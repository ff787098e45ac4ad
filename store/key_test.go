package store_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/store"
)

func TestParseCursor(t *testing.T) {
	tests := []struct {
		give string
		want store.Cursor
		ok   bool
	}{
		{"", store.Cursor{}, true},
		{"1-a", store.Cursor{Number: 1, Tag: "a"}, true},
		{"12-x7k2ab", store.Cursor{Number: 12, Tag: "x7k2ab"}, true},
		{"18446744073709551615-x7k2ab", store.Cursor{Number: 1<<64 - 1, Tag: "x7k2ab"}, true},
		{"18446744073709551616-x7k2ab", store.Cursor{}, false},
		{"12", store.Cursor{}, false},
		{"12-", store.Cursor{}, false},
		{"-x7k2ab", store.Cursor{}, false},
		{"0-x7k2ab", store.Cursor{}, false},
		{"012-x7k2ab", store.Cursor{}, false},
		{"+12-x7k2ab", store.Cursor{}, false},
		{"-12-x7k2ab", store.Cursor{}, false},
		{"1.5-x7k2ab", store.Cursor{}, false},
		{" 12-x7k2ab", store.Cursor{}, false},
		{"12-abcdefghijklm", store.Cursor{}, false},
		{"here", store.Cursor{}, false},
		{"12-x7\r\nk2", store.Cursor{}, false},
		{"12-x7 k2", store.Cursor{}, false},
		{"12-x7\x00k2", store.Cursor{}, false},
		{"12-ü", store.Cursor{}, false},
		{strings.Repeat("9", 5000), store.Cursor{}, false},
	}
	for _, tt := range tests {
		got, err := store.ParseCursor(tt.give)
		if got != tt.want || (err == nil) != tt.ok || (err != nil && !errors.Is(err, store.ErrCursorSyntax)) {
			t.Errorf("%q: got %+v, %v", tt.give, got, err)
		}
	}
}

func FuzzParseCursor(f *testing.F) {
	for _, s := range []string{"", "1-a", "12-x7k2ab", "0-a", "x", "1-a-b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := store.ParseCursor(s)
		if err != nil {
			return
		}
		b, err := c.MarshalText()
		if err != nil || string(b) != s || c.String() != s {
			t.Errorf("%q is written as %q and %q, %v", s, b, c, err)
		}
	})
}

func TestCursorInJSON(t *testing.T) {
	type event struct {
		Cursor store.Cursor `json:"cursor"`
	}
	for _, want := range []string{`{"cursor":"12-x7k2ab"}`, `{"cursor":""}`} {
		var e event
		if err := json.Unmarshal([]byte(want), &e); err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(e); err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	if err := json.Unmarshal([]byte(`{"cursor":"x"}`), new(event)); !errors.Is(err, store.ErrCursorSyntax) {
		t.Errorf("got %v", err)
	}
	if got := string(store.Cursor{Number: 7, Tag: "t"}.Append([]byte("id: "))); got != "id: 7-t" {
		t.Errorf("got %q", got)
	}
}

func TestFenceTag(t *testing.T) {
	for nonce, want := range map[string]string{"": "", "abc": "abc", "abcdef": "abcdef", "abcdefghij": "abcdef"} {
		if got := (store.Fence{Nonce: nonce}).Tag(); got != want {
			t.Errorf("%q: got %q, want %q", nonce, got, want)
		}
	}
}

func TestThreadKeyString(t *testing.T) {
	if got := (store.ThreadKey{Tenant: "acme", Thread: "t1"}).String(); got != "acme/t1" {
		t.Errorf("got %q", got)
	}
}

func TestPlainText(t *testing.T) {
	tests := []struct {
		give holdfast.Message
		want string
	}{
		{holdfast.Message{}, ""},
		{holdfast.Message{Text: "a"}, "a"},
		{holdfast.Message{Parts: []holdfast.Part{
			{Type: holdfast.PartText, Text: "a"},
			{Type: holdfast.PartImage, Source: &holdfast.Source{Value: "x"}},
			{Type: holdfast.PartText, Text: "b"},
		}}, "ab"},
	}
	for _, tt := range tests {
		if got := tt.give.PlainText(); got != tt.want {
			t.Errorf("%+v: got %q", tt.give, got)
		}
	}
}

func TestCursorText(t *testing.T) {
	t.Parallel()
	if got := (store.Cursor{Number: 12, Tag: "x7k2ab"}).String(); got != "12-x7k2ab" {
		t.Errorf("got %q", got)
	}
}
