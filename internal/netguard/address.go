package netguard

// Which hosts and addresses are private: addresses by the registries of IANA, in every
// notation that some client understands, and the names that never leave a network.

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// IsLoopback reports whether a host, with or without a port, is this machine: localhost, or one
// of its addresses in the usual notation.
func IsLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = canonical(strings.Trim(host, "[]"))
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// IsPrivate reports whether a host is one that only its own network or machine knows: an
// address that is not public, or a local name such as vault, printer.local or
// metadata.google.internal.
func IsPrivate(host string) bool {
	return IsPrivateAddress(host) || !isAddress(host) && isLocalName(host)
}

// IsPrivateAddress reports whether a host is this machine by name, or an address that is
// not a public one, in any notation that a client of the C library or a browser
// understands.
func IsPrivateAddress(host string) bool {
	host = canonical(host)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	host, _, _ = strings.Cut(host, "%") // an IPv6 zone
	if a, err := netip.ParseAddr(host); err == nil {
		return !isPublic(a)
	}
	if !endsInNumber(host) {
		return false // a name
	}
	labels := strings.Split(host, ".")
	a, ok := shortIPv4(labels)
	return !ok || !isPublic(a)
}

// isAddress reports whether a host is an address, in any notation.
func isAddress(host string) bool {
	host, _, _ = strings.Cut(canonical(host), "%")
	_, err := netip.ParseAddr(host)
	return err == nil || endsInNumber(host)
}

// canonical returns a host in lower case and without the dot that ends a full name.
func canonical(host string) string { return strings.ToLower(strings.TrimRight(host, ".")) }

// endsInNumber reports whether the last label of a host makes the host an IPv4 address
// (WHATWG URL, "ends in a number checker").
func endsInNumber(host string) bool {
	label := host[strings.LastIndexByte(host, '.')+1:]
	_, ok := ipv4Number(label)
	return ok || label != "" && strings.Trim(label, "0123456789") == ""
}

// shortIPv4 reads an IPv4 address of one to four numbers, each decimal, octal or
// hexadecimal; the last one fills what is left (inet_aton; WHATWG URL, "IPv4 parser").
func shortIPv4(labels []string) (netip.Addr, bool) {
	if len(labels) > 4 {
		return netip.Addr{}, false
	}
	var all uint64
	for i, label := range labels {
		n, ok := ipv4Number(label)
		last := i == len(labels)-1
		room := uint64(1) << 8
		if last {
			room = 1 << (8 * (5 - len(labels)))
		}
		if !ok || n >= room {
			return netip.Addr{}, false
		}
		if last {
			all |= n
		} else {
			all |= n << (8 * (3 - i))
		}
	}
	return netip.AddrFrom4([4]byte{byte(all >> 24), byte(all >> 16), byte(all >> 8), byte(all)}), true
}

// ipv4Number reads a number: hexadecimal after 0x, octal after 0, decimal otherwise.
func ipv4Number(label string) (uint64, bool) {
	digits, base := label, 10
	switch {
	case strings.HasPrefix(label, "0x"):
		digits, base = label[2:], 16
	case len(label) > 1 && label[0] == '0':
		digits, base = label[1:], 8
	}
	if digits == "" && base == 16 {
		return 0, true
	}
	if strings.ContainsAny(digits, "+-_") {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, base, 40)
	return n, err == nil
}

// localDomains are the domains whose names only a private network resolves: those set aside
// for that (RFC 6761, 6762 with its appendix G, 8375, and ICANN's internal, where the clouds
// have their metadata), and the one of services in Kubernetes.
var localDomains = []string{
	".localhost", ".local", ".internal", ".home.arpa", ".intranet", ".private", ".corp", ".home", ".lan", ".svc",
}

// isLocalName reports whether a host is a name that only its own network resolves: one
// without a dot, or below one of the local domains.
func isLocalName(host string) bool {
	host = canonical(host)
	return !strings.Contains(host, ".") ||
		slices.ContainsFunc(localDomains, func(end string) bool { return strings.HasSuffix("."+host, end) })
}

// blocks are the addresses that are not public and those that hold another address.
type blocks struct {
	// reserved are not public, and netip has no question for them (IANA, special-purpose
	// address registries).
	reserved []netip.Prefix
	// embedded are IPv6 addresses that hold an IPv4 address, and where in them.
	embedded []struct {
		block netip.Prefix
		at    int
	}
	// unicast has every IPv6 address that is assigned to anybody.
	unicast netip.Prefix
	// metadata answer only machines of their cloud, and with its credentials. A block in
	// Options.Allow does not allow them.
	metadata []netip.Addr
}

var special = blocks{
	reserved: prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4",
		"2001::/32", "2001:2::/48", "2001:10::/28", "2001:20::/28", "2001:db8::/32", "3fff::/20"),
	embedded: []struct {
		block netip.Prefix
		at    int
	}{
		{netip.MustParsePrefix("::/96"), 12}, {netip.MustParsePrefix("::ffff:0:0:0/96"), 12},
		{netip.MustParsePrefix("64:ff9b::/96"), 12}, {netip.MustParsePrefix("2002::/16"), 2},
	},
	unicast: netip.MustParsePrefix("2000::/3"),
	metadata: []netip.Addr{
		netip.MustParseAddr("169.254.169.254"),
		netip.MustParseAddr("169.254.170.2"),
		netip.MustParseAddr("169.254.170.23"),
		netip.MustParseAddr("169.254.42.42"),
		netip.MustParseAddr("169.254.0.23"),
		netip.MustParseAddr("fd00:ec2::254"),
		netip.MustParseAddr("fd00:ec2::23"),
		netip.MustParseAddr("fd20:ce::254"),
		netip.MustParseAddr("fd00:42::42"),
		netip.MustParseAddr("100.100.100.200"),
		netip.MustParseAddr("168.63.129.16"),
		netip.MustParseAddr("192.0.0.192"),
	},
}

func prefixes(texts ...string) (p []netip.Prefix) {
	for _, t := range texts {
		p = append(p, netip.MustParsePrefix(t))
	}
	return p
}

// isPublic reports whether an address is one that anybody on the internet can reach.
func isPublic(a netip.Addr) bool {
	a = innermost(a)
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Is6() && !special.unicast.Contains(a) ||
		slices.Contains(special.metadata, a) {
		return false
	}
	return !isReserved(a)
}

func isReserved(a netip.Addr) bool {
	return slices.ContainsFunc(special.reserved, func(p netip.Prefix) bool { return p.Contains(a) })
}

// innermost returns the address that packets to a reach in the end, as far as a shows it:
// the IPv4 address in an IPv6 address of a translation or a tunnel, or else a itself.
func innermost(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	for _, e := range special.embedded {
		if e.block.Contains(a) {
			b := a.As16()
			return netip.AddrFrom4([4]byte(b[e.at : e.at+4]))
		}
	}
	// ISATAP is at home in every public block: its mark is in the lower half (RFC 5214, 6.1).
	if b := a.As16(); special.unicast.Contains(a) && !isReserved(a) && b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e &&
		b[11] == 0xfe {
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}
