package door

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
)

// Origins are the origins whose pages may use a server from a browser (Fetch
// standard, CORS protocol). The zero value allows none. Make one with [ParseOrigins].
type Origins struct {
	any         bool
	exact       map[string]bool
	below       []wildcard
	credentials bool
}

// wildcard matches every subdomain of a domain.
type wildcard struct {
	scheme string // with "://"
	suffix string // ".example.com"
	port   string // ":8443", or empty
}

// ParseOrigins reads a list of origins: exact ones ("https://app.example.com",
// "http://localhost:3000"), all subdomains at any depth ("https://*.example.com",
// which does not include example.com itself), or "*" alone for all. With credentials,
// browsers may send cookies, for servers whose own authentication reads them; "*" is
// then refused, because any page could act as the person who visits it. Errors name
// the entry and say what to write instead.
func ParseOrigins(list []string, credentials bool) (Origins, error) {
	o := Origins{exact: map[string]bool{}, credentials: credentials}
	for _, s := range list {
		if s == "*" {
			if len(list) > 1 || credentials {
				return Origins{}, fmt.Errorf(`the origin "*" allows every page, so it must be the only one, without ` +
					`credentials: list the origins that you mean`)
			}
			return Origins{any: true}, nil
		}
		if err := o.add(s); err != nil {
			return Origins{}, fmt.Errorf("the origin %q cannot be used: %w", s, err)
		}
	}
	return o, nil
}

func (o *Origins) add(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme == "" || u.Hostname() == "":
		return fmt.Errorf("write scheme://host or scheme://host:port, like https://app.example.com")
	case u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil || strings.HasSuffix(s, "?") ||
		strings.HasSuffix(s, "#"):
		return fmt.Errorf("an origin is scheme, host and port only; leave out everything after that, " +
			"including the last slash")
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r > '~' }):
		return fmt.Errorf("write the host as browsers send it, in ASCII (xn--…)")
	}
	host, star := strings.CutPrefix(u.Hostname(), "*.")
	if strings.Contains(host, "*") {
		return fmt.Errorf("a * may only be at the start of the host, for its subdomains: https://*.example.com")
	}
	if !star {
		o.exact[normalOrigin(u)] = true
		return nil
	}
	if !strings.Contains(strings.Trim(host, "."), ".") || net.ParseIP(host) != nil {
		return fmt.Errorf("name at least a domain of your own after the *: https://*.example.com")
	}
	normal, err := url.Parse(normalOrigin(u))
	if err != nil {
		return err
	}
	w := wildcard{scheme: normal.Scheme + "://", suffix: strings.TrimPrefix(normal.Hostname(), "*")}
	if port := normal.Port(); port != "" {
		w.port = ":" + port
	}
	o.below = append(o.below, w)
	return nil
}

// normalOrigin returns an origin as browsers write it: lower case, no default port.
func normalOrigin(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	switch scheme {
	case "http":
		host = strings.TrimSuffix(host, ":80")
	case "https":
		host = strings.TrimSuffix(host, ":443")
	}
	return scheme + "://" + host
}

// Any reports whether every page may use the server. A server without authentication,
// which cannot tell callers apart, should not be given such Origins.
func (o Origins) Any() bool { return o.any }

// names reports whether the origin itself is listed; "*" does not count.
func (o Origins) names(origin string) bool {
	return o.exact[origin] || slices.ContainsFunc(o.below, func(w wildcard) bool { return w.covers(origin) })
}

func (w wildcard) covers(origin string) bool {
	host, ok := strings.CutPrefix(origin, w.scheme)
	if !ok {
		return false
	}
	if host, ok = strings.CutSuffix(host, w.suffix+w.port); !ok || host == "" {
		return false
	}
	return !strings.ContainsFunc(host, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
	})
}
