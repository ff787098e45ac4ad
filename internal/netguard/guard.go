// Package netguard connects to the internet on somebody else's word: a model chooses the
// arguments of a request, and a server names where it goes next. Such a request must not
// reach what only this network or this machine can: databases, metadata of clouds, other
// services (server-side request forgery).
//
// The decision is made when a connection is dialed, about the address that is dialed: the name
// is resolved once and the address that was looked at is the one that is used, so a name that
// stands for another address a moment later changes nothing. It is made for every connection,
// so for redirects too. A [Guard] without options refuses every private address;
// [Options.Allow] lists the exceptions.
package netguard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Options configure a [Guard].
type Options struct {
	// Allow lists what may be reached although it is private: addresses ("10.1.2.3"),
	// blocks of them ("10.0.0.0/8") and hosts ("orders.internal"), addresses and hosts also
	// with a port ("localhost:8080"). A host is allowed whatever it resolves to, except the
	// metadata of a cloud, whose address must be listed itself.
	Allow []string
	// Proxy is the URL of the proxy that all requests go through; "environment" means that
	// HTTP_PROXY, HTTPS_PROXY and NO_PROXY say so; empty or "direct" means none. The proxy
	// itself may have a private address. It resolves names itself, so what it reaches is in
	// the end its decision: the name is looked at before, and what it resolves to here.
	Proxy string
	// Resolver resolves names; default net.DefaultResolver.
	Resolver Resolver
	// Dial makes a connection to an address; default is that of a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// FromEnvironment says which proxy the environment has for a request; default
	// http.ProxyFromEnvironment.
	FromEnvironment func(*http.Request) (*url.URL, error)
}

// Resolver resolves names, as a [net.Resolver] does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Guard decides where connections may go. It may be used concurrently.
type Guard struct {
	resolver Resolver
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	proxy    func(*http.Request) (*url.URL, error) // nil if there is none

	hosts  map[string]bool // also with a port
	blocks []allowedBlock
}

// allowedBlock is a block of addresses in Options.Allow; with a port other than 0, only
// that port of them.
type allowedBlock struct {
	netip.Prefix
	port uint16
}

// The words for a proxy that are no URL.
const (
	proxyEnvironment = "environment"
	proxyDirect      = "direct"
)

// dialTimeout bounds one attempt to connect, like that of http.DefaultTransport.
const dialTimeout = 30 * time.Second

// New checks the options; an error names the one that is wrong.
func New(o Options) (*Guard, error) {
	g := &Guard{resolver: o.Resolver, dial: o.Dial, hosts: map[string]bool{}}
	if g.resolver == nil {
		g.resolver = net.DefaultResolver
	}
	if g.dial == nil {
		g.dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout}).DialContext
	}
	for i, text := range o.Allow {
		if err := g.allow(text); err != nil {
			return nil, fmt.Errorf("allow[%d]: %w", i, err)
		}
	}
	switch o.Proxy {
	case "", proxyDirect:
	case proxyEnvironment:
		if g.proxy = o.FromEnvironment; g.proxy == nil {
			g.proxy = http.ProxyFromEnvironment
		}
	default:
		u, err := url.Parse(o.Proxy)
		if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) ||
			u.RawQuery != "" || u.Fragment != "" {
			// The URL is not shown: it may have a password in it.
			return nil, errors.New(`proxy: it must be a URL like http://proxy:3128, ` +
				`"environment", or "direct" for none`)
		}
		g.proxy = http.ProxyURL(u)
	}
	return g, nil
}

// allow adds an entry of Options.Allow.
func (g *Guard) allow(text string) error {
	if p, err := netip.ParsePrefix(text); err == nil {
		if p.Addr().Is4In6() {
			return fmt.Errorf("%q is an IPv4 block in the form of IPv6: write it as IPv4", text)
		}
		g.blocks = append(g.blocks, allowedBlock{Prefix: p.Masked()})
		return nil
	}
	host, port := text, uint16(0)
	if h, p, err := net.SplitHostPort(text); err == nil {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("%q has a port that is not a number from 1 to 65535", text)
		}
		host, port = h, uint16(n)
	}
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil && a.Zone() == "" {
		a = a.Unmap()
		g.blocks = append(g.blocks, allowedBlock{netip.PrefixFrom(a, a.BitLen()), port})
		return nil
	}
	host = canonical(host)
	if !isName(host) {
		return fmt.Errorf("%q must be a host, an address or a block of addresses, like orders.internal, "+
			"localhost:8080 or 10.0.0.0/8", text)
	}
	if port != 0 {
		host = net.JoinHostPort(host, strconv.Itoa(int(port)))
	}
	g.hosts[host] = true
	return nil
}

// isName reports whether a host, in lower case, is a name as DNS has them.
func isName(host string) bool {
	if host == "" || len(host) > 253 || endsInNumber(host) {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

// Refused is the error about a connection that was not made. Its text is for the log,
// because it has the address that a name stands for here; see [Refused.Public].
type Refused struct {
	// Host is the host as the request has it, Port its port.
	Host, Port string
	// Addresses are what the host stands for; nil if the host alone was enough.
	Addresses []netip.Addr
	// Malformed: clients disagree about what the host means.
	Malformed bool
}

// Error implements error.
func (e *Refused) Error() string {
	switch {
	case e.Malformed:
		return fmt.Sprintf("no connection to %q: it is no host that all clients read alike", e.Host)
	case len(e.Addresses) > 0:
		return fmt.Sprintf("no connection to %q, which is %v: only private addresses", e.Host, e.Addresses)
	}
	return fmt.Sprintf("no connection to %q: it is private", e.Host)
}

// Public returns what callers and models may read.
func (e *Refused) Public() string {
	if e.Malformed {
		return fmt.Sprintf("%q is not the name of a host, nor an address in its usual form.", e.Host)
	}
	return fmt.Sprintf("%q is in a private network, and this server does not connect to it.", e.Host)
}

// Check returns the addresses that a connection to the host may use. It is a [*Refused] if
// there are none, and the resolver's error if the name does not resolve.
func (g *Guard) Check(ctx context.Context, host, port string) ([]netip.Addr, error) {
	return g.check(ctx, "ip", host, port)
}

func (g *Guard) check(ctx context.Context, network, host, port string) ([]netip.Addr, error) {
	refused := &Refused{Host: host, Port: port}
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" || !g.allows(a, port, false) {
			return nil, refused
		}
		return []netip.Addr{a.Unmap()}, nil
	}
	if !isName(canonical(host)) {
		refused.Malformed = true
		return nil, refused
	}
	listed := g.listed(host, port)
	all, err := g.resolver.LookupNetIP(ctx, network, host)
	if err != nil {
		return nil, err
	}
	var usable []netip.Addr
	for _, a := range all {
		if a = a.Unmap(); a.Zone() == "" && g.allows(a, port, listed) {
			usable = append(usable, a)
		}
	}
	if len(usable) == 0 {
		refused.Addresses = all
		return nil, refused
	}
	return usable, nil
}

// listed reports whether a host is in Options.Allow.
func (g *Guard) listed(host, port string) bool {
	host = canonical(host)
	return g.hosts[host] || g.hosts[net.JoinHostPort(host, port)]
}

// allows reports whether a connection may go to an address; listed says that its host is
// in Options.Allow.
func (g *Guard) allows(a netip.Addr, port string, listed bool) bool {
	a = a.Unmap()
	metadata := slices.Contains(special.metadata, innermost(a))
	if listed && !metadata || isPublic(a) {
		return true
	}
	return slices.ContainsFunc(g.blocks, func(b allowedBlock) bool {
		return b.Contains(a) && (b.port == 0 || strconv.Itoa(int(b.port)) == port) && (!metadata || b.IsSingleIP())
	})
}

// DialContext connects to an address that [Guard.Check] allows, and to no other. It is the
// DialContext of a transport that uses no proxy; see [Guard.Transport].
func (g *Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	ip, known := map[string]string{"tcp": "ip", "tcp4": "ip4", "tcp6": "ip6"}[network]
	if !known {
		return nil, fmt.Errorf("no connection by %q: only by TCP", network)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addresses, err := g.check(ctx, ip, host, port)
	if err != nil {
		return nil, err
	}
	return g.race(ctx, network, port, addresses)
}

// fallbackDelay is how long addresses of one family have before those of the other are tried
// too (RFC 8305; net.Dialer has the same).
const fallbackDelay = 300 * time.Millisecond

// dialed is what came of an attempt to connect.
type dialed struct {
	conn net.Conn
	err  error
}

// race connects to one of the addresses: those of the first one's family first, and soon those
// of the other beside them, because one family may lead nowhere in this network. It waits for
// the attempt that it gives up.
func (g *Guard) race(ctx context.Context, network, port string, addresses []netip.Addr) (net.Conn, error) {
	var first, other []netip.Addr
	for _, a := range addresses {
		if a.Is4() == addresses[0].Is4() {
			first = append(first, a)
		} else {
			other = append(other, a)
		}
	}
	if len(other) == 0 {
		return g.inTurn(ctx, network, port, first)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begin := func(addresses []netip.Addr) chan dialed {
		done := make(chan dialed, 1)
		go func() {
			conn, err := g.inTurn(ctx, network, port, addresses)
			done <- dialed{conn, err}
		}()
		return done
	}
	one := begin(first)
	delay := time.NewTimer(fallbackDelay)
	defer delay.Stop()
	select {
	case d := <-one:
		if d.err == nil {
			return d.conn, nil
		}
		one <- d
	case <-delay.C:
	}
	two := begin(other)
	var won dialed
	left := two
	select {
	case won = <-one:
	case won = <-two:
		left = one
	}
	if won.err == nil {
		cancel()
	}
	switch late := <-left; {
	case won.err != nil && late.err == nil:
		return late.conn, nil
	case late.err == nil:
		_ = late.conn.Close() // nobody has used it
	}
	return won.conn, won.err
}

// inTurn connects to the first of the addresses that answers.
func (g *Guard) inTurn(ctx context.Context, network, port string, addresses []netip.Addr) (net.Conn, error) {
	var first error
	for i, a := range addresses {
		conn, err := g.dialOne(ctx, network, net.JoinHostPort(a.String(), port), len(addresses)-i)
		if err == nil {
			return conn, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// dialOne connects to one of several addresses that are left, with its share of the time.
func (g *Guard) dialOne(ctx context.Context, network, address string, left int) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok && left > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
	}
	return g.dial(ctx, network, address)
}
