package server

import (
	"errors"
	"net"

	hfhttp "github.com/holdfast-agents/holdfast/internal/http"
)

// doors is who may reach the routes that need authentication.
type doors struct {
	loopback, anonymous bool
	hosts               hfhttp.Hosts
	origins             hfhttp.Origins
}

func (c *Config) doors() (d doors, err error) {
	d.loopback = c.Authenticate == nil && !c.AllowAnonymous
	d.anonymous = c.Authenticate == nil && c.AllowAnonymous
	if d.origins, err = hfhttp.ParseOrigins(c.AllowedOrigins, false); err != nil {
		return d, err
	}
	if c.Authenticate == nil && d.origins.Any() {
		return d, errors.New(
			`the origin "*" lets any page use a server without keys: configure API keys, or list ` +
				`the origins that you mean`,
		)
	}
	hosts := c.Hosts
	if d.anonymous && len(hosts) == 0 {
		hosts = []string{"localhost", "127.0.0.1", "[::1]"}
		host, _, err := net.SplitHostPort(c.Addr)
		if ip := net.ParseIP(host); err == nil && host != "" && (ip == nil || !ip.IsUnspecified()) {
			if ip != nil && ip.To4() == nil {
				host = "[" + host + "]"
			}
			hosts = append(hosts, host)
		}
	}
	d.hosts, err = hfhttp.ParseHosts(hosts)
	return d, err
}
