package stores

import (
	"strings"
	"testing"
)

// TestParseDurability: what is not known is refused with what can be written.
func TestParseDurability(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 0, "store": 0, "failover": 1, "failover:1": 1, "failover:3": 3} {
		if n, err := ParseDurability(text); n != want || err != nil {
			t.Errorf("%q is %d replicas, %v", text, n, err)
		}
	}
	for _, text := range []string{"machine", "failover:", "failover:0", "failover:-1", "failover:x", "failover:1000",
		"FAILOVER"} {
		if _, err := ParseDurability(text); err == nil || !strings.Contains(err.Error(), "failover:N") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestFailoverNeedsRedis: a store that has no replicas cannot promise what they keep, and the
// error does not show the URL.
func TestFailoverNeedsRedis(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"memory:", "file:" + t.TempDir() + "/secret"} {
		s, err := Open(url, Options{Durability: "failover"})
		if err == nil {
			t.Fatal(s.Close())
		}
		if !strings.Contains(err.Error(), "replicas of Redis") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
