package decide

import (
	"cmp"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// Media that clients send by reference: a URL, or the id of a file at the model's
// provider. The provider fetches a URL, which for a model server of one's own means from
// inside the operator's network, and it finds a file in the operator's account. So the
// agent says which references it takes, and a URL must not name an address that only this
// network or this machine can reach. Names are not resolved: what they stand for can
// change between here and the provider.

// refusal is why a reference is not taken, and what the client can send instead.
type refusal struct{ why, instead string }

var (
	noURL     = &refusal{"by URL, and this agent takes none", `Send the content itself: a source of type "data".`}
	notHTTPS  = &refusal{"by a URL that is not https", `Send an https URL, or the content itself: a source of type "data". Operators allow other URLs with media: {urls: any}.`}
	private   = &refusal{"by the address of a private network or of the server itself", `Send a URL that everybody can reach, or the content itself: a source of type "data".`}
	malformed = &refusal{"by a URL that cannot be read", `Send an absolute URL without user name, backslashes and characters outside of ASCII, or the content itself: a source of type "data".`}
	noFile    = &refusal{"by the id of a file, and this agent takes none", `Send the content itself: a source of type "data". Operators allow file ids with media: {files: true}.`}
)

// checkMedia refuses a message with a reference that the agent does not take.
func checkMedia(m *agui.Message, p *holdfast.ClientPolicy) *holdfast.Error {
	if len(m.Content) == 0 || m.Content[0] != '[' {
		return nil
	}
	d, err := m.Domain()
	if err != nil {
		return nil // the decoder has refused it
	}
	for i := range d.Parts {
		if r := refuse(d.Parts[i].Source, p); r != nil {
			return errMedia(m.ID, i, d.Parts[i].Type, r)
		}
	}
	return nil
}

// Withhold returns a message as the model may be shown it: parts that the agent does not
// take are replaced by a note. They are in threads that another agent, or this one with
// another configuration, has taken them into.
func Withhold(m holdfast.Message, p *holdfast.ClientPolicy) holdfast.Message {
	own := false // m.Parts is this function's own
	for i := range m.Parts {
		r := refuse(m.Parts[i].Source, p)
		if r == nil {
			continue
		}
		if !own {
			m.Parts, own = append([]holdfast.Part(nil), m.Parts...), true
		}
		m.Parts[i] = holdfast.Part{
			Type: holdfast.PartText, ID: m.Parts[i].ID, Text: "[This " + string(m.Parts[i].Type) + " was left out: it was sent " + r.why + ".]",
		}
	}
	return m
}

// refuse returns why a source is not taken; nil if it is.
func refuse(s *holdfast.Source, p *holdfast.ClientPolicy) *refusal {
	switch {
	case s == nil || s.Type == holdfast.SourceData:
		return nil
	case s.Type == holdfast.SourceURL:
		return refuseURL(s.Value, cmp.Or(p.MediaURLs, thread.MediaHTTPS))
	case p.MediaFiles:
		return nil
	}
	return noFile
}

// refuseURL returns why a URL is not taken; nil if it is. A data: URL holds the content
// itself.
func refuseURL(text, allowed string) *refusal {
	if len(text) >= 5 && strings.EqualFold(text[:5], "data:") {
		return nil
	}
	if allowed == thread.MediaNone {
		return noURL
	}
	// Readers of URLs disagree about these, so the provider might find another host in it.
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }) {
		return malformed
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.User != nil {
		return malformed
	}
	web := u.Scheme == "https" || u.Scheme == "http"
	switch {
	case u.Scheme != "https" && allowed != thread.MediaAny:
		return notHTTPS
	case web && u.Hostname() == "":
		return malformed
	case isPrivate(u.Hostname()):
		return private
	}
	return nil
}

// isPrivate reports whether a host is this machine by name, or an address that is not a
// public one, in any notation that a client of the C library or a browser understands.
func isPrivate(host string) bool {
	host = strings.ToLower(strings.TrimRight(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	host, _, _ = strings.Cut(host, "%") // an IPv6 zone
	if a, err := netip.ParseAddr(host); err == nil {
		return !isPublic(a)
	}
	labels := strings.Split(host, ".")
	if !isNumber(labels[len(labels)-1]) {
		return false // a name
	}
	a, ok := shortIPv4(labels)
	return !ok || !isPublic(a)
}

// isNumber reports whether the last label of a host makes the host an IPv4 address (WHATWG
// URL, "ends in a number checker").
func isNumber(label string) bool {
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

// reserved are the blocks of addresses that are not public and that netip has no question
// for (IANA, special-purpose address registries).
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("fec0::/10"),
	netip.MustParsePrefix("64:ff9b:1::/48"),
}

// embedded are the blocks of IPv6 addresses that hold an IPv4 address, and where in them.
var embedded = []struct {
	block netip.Prefix
	at    int
}{
	{netip.MustParsePrefix("::/96"), 12}, {netip.MustParsePrefix("64:ff9b::/96"), 12}, {netip.MustParsePrefix("2002::/16"), 2},
}

// isPublic reports whether an address is one that anybody on the internet can reach.
func isPublic(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, block := range reserved {
		if block.Contains(a) {
			return false
		}
	}
	for _, e := range embedded {
		if e.block.Contains(a) {
			b := a.As16()
			return isPublic(netip.AddrFrom4([4]byte(b[e.at : e.at+4])))
		}
	}
	return true
}
