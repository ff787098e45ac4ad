package door

import (
	"strings"
	"testing"
)

func TestParseHosts(t *testing.T) {
	for _, tt := range []struct {
		list, host string
		want       bool
	}{
		{"localhost:8080", "localhost:8080", true},
		{"localhost:8080", "LOCALHOST:8080", true},
		{"localhost:8080", "localhost", false},
		{"localhost:8080", "localhost:8081", false},
		{"localhost:8080", "127.0.0.1:8080", false},
		{"Agents.example.com", "agents.example.com", true},
		{"agents.example.com", "agents.example.com:8443", true},
		{"agents.example.com", "agents.example.com.evil.example", false},
		{"agents.example.com", "evil.agents.example.com", false},
		{"[::1]", "[::1]:8080", true},
		{"[::1]", "[::1]", true},
		{"10.0.0.1", "10.0.0.1:80", true},
		{"*", "whatever.example:1", true},
		{"a.example b.example", "b.example", true},
		{"", "localhost", false},
		{"localhost", "", false},
	} {
		h, err := ParseHosts(strings.Fields(tt.list))
		if got := h.name(tt.host); err != nil || got != tt.want {
			t.Errorf("%q names %q: %v", tt.list, tt.host, got)
		}
	}
	for _, wrong := range []string{"http://localhost", "localhost/", "a b", "*.example.com", "user@localhost", ":8080",
		"", "localhost:x", "a?b"} {
		if _, err := ParseHosts([]string{wrong}); err == nil || !strings.Contains(err.Error(), "write a name") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if _, err := ParseHosts([]string{"*", "localhost"}); err == nil {
		t.Error("* beside another host")
	}
}

func TestLoopbackOnly(t *testing.T) {
	for origin, want := range map[string]bool{"http://localhost:3000": true, "https://127.0.0.1": true, "null": false,
		"http://evil.example": false, "file://localhost": false} {
		if got := isLocalOrigin(origin); got != want {
			t.Errorf("isLocalOrigin(%q) = %v", origin, got)
		}
	}
}
