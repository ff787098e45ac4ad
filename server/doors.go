package server

import (
	"errors"
	"net"

	"github.com/holdfast-agents/holdfast/internal/http/door"
)

// door is who may reach the routes that need authentication.
func (c *Config) door() (d door.Door, err error) {
	d.LoopbackOnly = c.Authenticate == nil && !c.AllowAnonymous
	d.Anonymous = c.Authenticate == nil && c.AllowAnonymous
	d.BehindProxy = c.BehindProxy
	if d.Origins, err = door.ParseOrigins(c.AllowedOrigins, false); err != nil {
		return d, err
	}
	if c.Authenticate == nil && d.Origins.Any() {
		return d, errors.New(`the origin "*" lets any page use a server without keys: configure API keys, or list ` +
			`the origins that you mean`)
	}
	hosts := c.Hosts
	if d.Anonymous && len(hosts) == 0 {
		hosts = []string{"localhost", "127.0.0.1", "[::1]"}
		host, _, err := net.SplitHostPort(c.Addr)
		if ip := net.ParseIP(host); err == nil && host != "" && (ip == nil || !ip.IsUnspecified()) {
			if ip != nil && ip.To4() == nil {
				host = "[" + host + "]"
			}
			hosts = append(hosts, host)
		}
	}
	d.Hosts, err = door.ParseHosts(hosts)
	return d, err
}
