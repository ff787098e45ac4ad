package holdfast_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/holdfast-agents/holdfast"
)

func TestParseCursor(t *testing.T) {
	tests := []struct {
		give string
		want holdfast.Cursor
		ok   bool
	}{
		{"", holdfast.Cursor{}, true},
		{"1-a", holdfast.Cursor{Number: 1, Tag: "a"}, true},
		{"12-x7k2ab", holdfast.Cursor{Number: 12, Tag: "x7k2ab"}, true},
		{"18446744073709551615-x7k2ab", holdfast.Cursor{Number: 1<<64 - 1, Tag: "x7k2ab"}, true},
		{"18446744073709551616-x7k2ab", holdfast.Cursor{}, false},
		{"12", holdfast.Cursor{}, false},
		{"12-", holdfast.Cursor{}, false},
		{"-x7k2ab", holdfast.Cursor{}, false},
		{"0-x7k2ab", holdfast.Cursor{}, false},
		{"012-x7k2ab", holdfast.Cursor{}, false},
		{"+12-x7k2ab", holdfast.Cursor{}, false},
		{"-12-x7k2ab", holdfast.Cursor{}, false},
		{"1.5-x7k2ab", holdfast.Cursor{}, false},
		{" 12-x7k2ab", holdfast.Cursor{}, false},
		{"12-abcdefghijklm", holdfast.Cursor{}, false},
		{"here", holdfast.Cursor{}, false},
	}
	for _, tt := range tests {
		got, err := holdfast.ParseCursor(tt.give)
		if got != tt.want || (err == nil) != tt.ok || (err != nil && !errors.Is(err, holdfast.ErrCursorSyntax)) {
			t.Errorf("%q: got %+v, %v", tt.give, got, err)
		}
	}
}

func FuzzParseCursor(f *testing.F) {
	for _, s := range []string{"", "1-a", "12-x7k2ab", "0-a", "x", "1-a-b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := holdfast.ParseCursor(s)
		if err != nil {
			return
		}
		b, err := c.MarshalText()
		if err != nil || string(b) != s {
			t.Errorf("%q is written as %q, %v", s, b, err)
		}
	})
}

func TestCursorInJSON(t *testing.T) {
	type event struct {
		Cursor holdfast.Cursor `json:"cursor"`
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
	if err := json.Unmarshal([]byte(`{"cursor":"x"}`), new(event)); !errors.Is(err, holdfast.ErrCursorSyntax) {
		t.Errorf("got %v", err)
	}
	if got := string(holdfast.Cursor{Number: 7, Tag: "t"}.Append([]byte("id: "))); got != "id: 7-t" {
		t.Errorf("got %q", got)
	}
}

func TestFenceTag(t *testing.T) {
	for nonce, want := range map[string]string{"": "", "abc": "abc", "abcdef": "abcdef", "abcdefghij": "abcdef"} {
		if got := (holdfast.Fence{Nonce: nonce}).Tag(); got != want {
			t.Errorf("%q: got %q, want %q", nonce, got, want)
		}
	}
}

func TestThreadKeyString(t *testing.T) {
	if got := (holdfast.ThreadKey{Tenant: "acme", Thread: "t1"}).String(); got != "acme/t1" {
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
