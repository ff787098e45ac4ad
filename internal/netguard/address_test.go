package netguard

import "testing"

func TestIsLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "localhost:8080": true, "127.0.0.1:1": true, "127.1.2.3": true, "[::1]:80": true,
		"::1":   true,
		"[::1]": true, "::ffff:127.0.0.1": true, "LOCALHOST.": true,
		"example.com": false, "localhost.example.com": false, "10.0.0.1": false, "10.0.0.1:80": false, "": false,
		"127.0.0.1.nip.io": false, "0.0.0.0": false, "::1:80": false, ":8080": false, "a.localhost": false,
	} {
		if got := IsLoopback(host); got != want {
			t.Errorf("IsLoopback(%q) = %v", host, got)
		}
	}
}

// TestLocalNames: a name is private if it is below one of the local domains, is such a domain
// itself, or has no dot.
func TestLocalNames(t *testing.T) {
	for _, end := range localDomains {
		for _, host := range []string{"nas" + end, "a.b" + end, end[1:], "NAS" + end + "."} {
			if !IsPrivate(host) {
				t.Errorf("%s is not private", host)
			}
		}
		for _, host := range []string{"nas" + end[1:] + ".example", "nas" + end + ".example.com", "a.my" + end[1:]} {
			if IsPrivate(host) {
				t.Errorf("%s is private", host)
			}
		}
	}
	for host, want := range map[string]bool{
		"tv.home": true, "home": true, "vault": true, "home.example": false, "a.myhome": false, "home.com": false,
	} {
		if got := IsPrivate(host); got != want {
			t.Errorf("IsPrivate(%q) = %v", host, got)
		}
	}
}
