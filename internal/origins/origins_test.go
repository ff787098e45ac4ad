package origins

import (
	"strings"
	"testing"
)

// TestValid: an origin has a scheme and a host, and perhaps a port, and nothing that a policy would read as
// anything else.
func TestValid(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"https://a.example", "http://localhost:8080", "wss://*.a-b.example", "ws://1.2.3.4:1",
		"https://" + strings.Repeat("a", 253)} {
		if !Valid(text) {
			t.Errorf("%s is none", text)
		}
	}
	for _, text := range []string{"", "*", "https:", "https://", "https://*", "https://*.", "https://a.*", "data:",
		"'self'",
		"https://a.example/", "https://a.example; script-src *", "https://a.example *", "https://a.example\n",
		"https://a.example\r\nX: y", "https://a.example,b", "https://'a'", "https://a@b", "https://a:123456",
		"javascript:x", "https://ä.example", "https://a..b", "HTTPS://a", "https://" + strings.Repeat("a", 263)} {
		if Valid(text) {
			t.Errorf("%q is one", text)
		}
	}
}
