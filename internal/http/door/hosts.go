package door

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast/internal/netguard"
)

// Hosts are the names by which clients may address a server. The zero value names none.
// Make one with [ParseHosts].
type Hosts struct {
	any   bool
	names []string // in lower case, with or without a port
}

// ParseHosts reads a list of hosts: "agents.example.com" with any port,
// "localhost:8080" with this port only, or "*" alone for all. Errors name the entry.
func ParseHosts(list []string) (Hosts, error) {
	var h Hosts
	for _, s := range list {
		if s == "*" {
			if len(list) > 1 {
				return Hosts{}, fmt.Errorf(`the host "*" allows every name, so it must be the only one`)
			}
			return Hosts{any: true}, nil
		}
		u, err := url.Parse("//" + s)
		if err != nil || u.Host != s || u.Hostname() == "" || strings.ContainsAny(s, "*, ") {
			return Hosts{}, fmt.Errorf("the host %q cannot be used: write a name or an address, with or without a "+
				"port, like agents.example.com or localhost:8080", s)
		}
		h.names = append(h.names, strings.ToLower(s))
	}
	return h, nil
}

// First returns the first name; empty if none is named, or any is good.
func (h Hosts) First() string {
	if len(h.names) == 0 {
		return ""
	}
	return h.names[0]
}

// set reports whether any host is named.
func (h Hosts) set() bool { return h.any || len(h.names) > 0 }

// name reports whether a Host header is one of the names.
func (h Hosts) name(host string) bool {
	host = strings.ToLower(host)
	bare := host
	if name, _, err := net.SplitHostPort(host); err == nil {
		bare = name
		if strings.Contains(name, ":") {
			bare = "[" + name + "]"
		}
	}
	return h.any || slices.Contains(h.names, host) || slices.Contains(h.names, bare)
}

// sameOrigin reports whether an origin is that of the Host header. The scheme is not
// compared: a proxy may have ended TLS.
func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	port := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	if port == "" {
		return false
	}
	trim := func(s string) string { return strings.TrimSuffix(strings.ToLower(s), port) }
	return trim(u.Host) == trim(host)
}

func isLocalOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && netguard.IsLoopback(u.Host)
}
