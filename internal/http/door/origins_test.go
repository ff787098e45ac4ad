package door

import (
	"strings"
	"testing"
)

func TestParseOrigins(t *testing.T) {
	for _, c := range []struct{ list, origin string }{
		{"https://app.example.com", "https://app.example.com"},
		{"HTTPS://App.Example.com:443", "https://app.example.com"},
		{"http://localhost:3000", "http://localhost:3000"},
		{"http://a.example:80", "http://a.example"},
		{"http://[::1]:3000", "http://[::1]:3000"},
		{"capacitor://localhost", "capacitor://localhost"},
		{"https://*.example.com", "https://a.example.com"},
		{"https://*.Example.com", "https://a.b.example.com"},
		{"https://*.example.com:8443", "https://a.example.com:8443"},
		{"https://x.example https://y.example", "https://y.example"},
	} {
		o, err := ParseOrigins(strings.Fields(c.list), true)
		if err != nil || !o.names(c.origin) {
			t.Errorf("%s does not allow %s: %v", c.list, c.origin, err)
		}
	}
	for _, c := range []struct{ list, origin string }{
		{"https://app.example.com", "http://app.example.com"},
		{"https://app.example.com", "https://app.example.com:8443"},
		{"https://app.example.com", "https://app.example.com.evil.example"},
		{"https://*.example.com", "https://example.com"},
		{"https://*.example.com", "http://a.example.com"},
		{"https://*.example.com", "https://evilexample.com"},
		{"https://*.example.com", "https://.example.com"},
		{"https://*.example.com", "https://evil.example/.example.com"},
		{"https://*.example.com", "https://evil@a.example.com"},
		{"https://*.example.com", "https://a.example.com:8443"},
		{"https://*.example.com:8443", "https://a.example.com"},
		{"https://app.example.com", "null"},
		{"", "https://app.example.com"},
	} {
		o, err := ParseOrigins(strings.Fields(c.list), false)
		if err != nil || o.names(c.origin) {
			t.Errorf("%q allows %s: %v", c.list, c.origin, err)
		}
	}
}

// TestOriginMistakes: a mistake in the configuration is found at startup, and the error
// says what to write.
func TestOriginMistakes(t *testing.T) {
	for _, list := range []string{
		"null", "example.com", "localhost:3000", "https://", "https://a.example/", "https://a.example/x",
		"https://a.example?", "https://u:p@a.example",
		"https://*", "https://*.com", "https://*.1.2.3.4", "https://a.*.example.com", "https://*a.example.com",
		"https://ü.example", "* https://a.example", "https://a.example #",
	} {
		if _, err := ParseOrigins(strings.Fields(list), false); err == nil {
			t.Errorf("%q is accepted", list)
		}
	}
	if _, err := ParseOrigins([]string{"*"}, true); err == nil {
		t.Error("every page may act as the person who visits it")
	}
	if o, err := ParseOrigins([]string{"*"}, false); err != nil || !o.Any() {
		t.Errorf("*: %v", err)
	}
}
