package netguard

// The guard against a real server on this machine, with a resolver that says whatever a
// test wants: names for private addresses, names that change what they stand for, proxies.

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// names is a resolver: each lookup of a name takes its next answer, the last one for ever.
type names struct {
	answers map[string][]string
	asked   atomic.Int32
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	asked := int(n.asked.Add(1)) - 1
	list := n.answers[canonical(host)]
	if len(list) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	var a []netip.Addr
	for text := range strings.FieldsSeq(list[min(asked, len(list)-1)]) {
		a = append(a, netip.MustParseAddr(text))
	}
	return a, nil
}

// internet stands for the internet: public addresses lead to a server on this machine, and
// it remembers what was dialed.
type internet struct {
	server *httptest.Server
	dialed chan string
}

func newInternet(t *testing.T, h http.HandlerFunc) *internet {
	n := &internet{server: httptest.NewServer(h), dialed: make(chan string, 100)}
	t.Cleanup(n.server.Close)
	return n
}

func (n *internet) dial(ctx context.Context, network, address string) (net.Conn, error) {
	n.dialed <- address
	return new(net.Dialer).DialContext(ctx, network, n.server.Listener.Addr().String())
}

func newGuard(t *testing.T, o Options) *Guard {
	t.Helper()
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// get returns the body of what a guarded client gets.
func get(t *testing.T, g *Guard, url string) (string, error) {
	t.Helper()
	transport := g.Transport(nil)
	t.Cleanup(transport.CloseIdleConnections)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	res, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return string(b), err
}

func hello(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello "+r.Host) }

// TestPrivateAddressesAreNotDialed: in whatever form an address is written, and whatever a
// name stands for.
func TestPrivateAddressesAreNotDialed(t *testing.T) {
	t.Parallel()
	private := []string{
		"127.0.0.1",
		"127.8.9.10",
		"0.0.0.0",
		"0.1.2.3",
		"10.1.2.3",
		"172.16.0.1",
		"172.31.255.255",
		"192.168.1.1",
		"169.254.169.254",
		"169.254.1.1",
		"100.64.0.1",
		"100.100.100.200",
		"168.63.129.16",
		"192.0.0.192",
		"192.88.99.1",
		"198.18.0.1",
		"224.0.0.1",
		"239.1.2.3",
		"240.0.0.1",
		"255.255.255.255",
		"::",
		"::1",
		"::ffff:127.0.0.1",
		"::ffff:10.0.0.1",
		"::ffff:0:10.0.0.1",
		"::127.0.0.1",
		"fe80::1",
		"fc00::1",
		"fd12::1",
		"fd00:ec2::254",
		"fec0::1",
		"ff02::1",
		"64:ff9b::10.0.0.1",
		"64:ff9b:1::1",
		"2002:7f00:1::",
		"2002:a9fe:a9fe::1",
		"2001:0:4136:e378::1",
		"100::1",
		"4000::1",
		"5f00::1",
		"2606:4700::5efe:10.0.0.1",
		"2606:4700::200:5efe:127.0.0.1",
		"fe80::5efe:8.8.8.8",
		"fd12::5efe:8.8.8.8",
		"2001:db8::5efe:8.8.8.8",
		"2606:4700::5efe:169.254.169.254",
		"2001:db8::1",
		"2001:2::1",
		"2001:10::1",
		"2001:20::1",
		"3fff::1",
	}
	for _, a := range private {
		n := newInternet(t, hello)
		resolver := &names{answers: map[string][]string{"trap.example": {a}}}
		g := newGuard(t, Options{Resolver: resolver, Dial: n.dial})
		literal := a
		if strings.Contains(a, ":") {
			literal = "[" + a + "]"
		}
		for _, host := range []string{literal, literal + ":8080", "trap.example", "trap.example.", "TRAP.example:81",
			"user@trap.example", "example.com@" + literal} {
			_, err := get(t, g, "http://"+host+"/")
			var refused *Refused
			if !errors.As(err, &refused) {
				t.Errorf("%s (%s): %v", host, a, err)
				continue
			}
			if strings.Contains(host, "trap") && strings.Contains(refused.Public(), a) {
				t.Errorf("callers read what a name stands for: %s", refused.Public())
			}
		}
		if len(n.dialed) > 0 {
			t.Errorf("%s was dialed", <-n.dialed)
		}
	}
	for _, host := range []string{
		"127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "0", "0x", "169.254.43518", "08.0.0.1",
		"1.2.3.4.5", "8.8.8.8.", "134744072", "[fe80::1%25eth0]",
		"[2606:4700::1111%25eth0]", "a..b", "-", "ex%41mple.com", "a_b%2fc", "foo.0x7f",
	} {
		n := newInternet(t, hello)
		g := newGuard(t, Options{Resolver: &names{}, Dial: n.dial})
		if _, err := get(t, g, "http://"+host+"/"); err == nil || len(n.dialed) > 0 {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// TestPublicAddressesAreDialed: also through the names and translations of public ones.
func TestPublicAddressesAreDialed(t *testing.T) {
	t.Parallel()
	for _, a := range []string{"8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::8.8.8.8",
		"::ffff:8.8.8.8", "2606:4700::5efe:8.8.8.8", "2001:4860:4860::8888"} {
		n := newInternet(t, hello)
		g := newGuard(t, Options{Resolver: &names{answers: map[string][]string{"xn--bcher-kva.example": {a}}},
			Dial: n.dial})
		body, err := get(t, g, "http://bücher.example:8080/")
		if err != nil || body != "hello xn--bcher-kva.example:8080" {
			t.Errorf("%s: %q, %v", a, body, err)
		}
		if want := net.JoinHostPort(netip.MustParseAddr(a).Unmap().String(), "8080"); <-n.dialed != want {
			t.Errorf("not dialed: %s", want)
		}
	}
}

// TestRebinding: the address that was looked at is the one that is dialed; the name is not
// resolved again in between. When it is resolved for the next connection, it is looked at
// again.
func TestRebinding(t *testing.T) {
	t.Parallel()
	n := newInternet(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		hello(w, r)
	})
	resolver := &names{answers: map[string][]string{"rebind.example": {"8.8.8.8", "127.0.0.1"}}}
	g := newGuard(t, Options{Resolver: resolver, Dial: n.dial})
	if body, err := get(t, g, "http://rebind.example/"); err != nil || body != "hello rebind.example" {
		t.Fatalf("%q, %v", body, err)
	}
	if dialed := <-n.dialed; dialed != "8.8.8.8:80" || resolver.asked.Load() != 1 {
		t.Errorf("dialed %s after %d lookups", dialed, resolver.asked.Load())
	}
	if _, err := get(t, g, "http://rebind.example/"); !errors.As(err, new(*Refused)) || len(n.dialed) > 0 {
		t.Errorf("the second time: %v", err)
	}
}

// TestMixedAnswers: of a name with public and private addresses only the public ones are
// used, also if they do not answer.
func TestMixedAnswers(t *testing.T) {
	t.Parallel()
	var dialed []string
	g := newGuard(t, Options{
		Resolver: &names{answers: map[string][]string{"mixed.example": {"127.0.0.1 8.8.8.8 ::1 9.9.9.9"}}},
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			dialed = append(dialed, address)
			return nil, errors.New("no answer from " + address)
		},
	})
	if _, err := get(t, g, "https://mixed.example/"); err == nil ||
		!strings.Contains(err.Error(), "no answer from 8.8.8.8:443") {
		t.Error(err)
	}
	if strings.Join(dialed, " ") != "8.8.8.8:443 9.9.9.9:443" {
		t.Errorf("dialed %v", dialed)
	}
}

// TestRedirects: every hop is looked at.
func TestRedirects(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"http://127.0.0.1/", "http://[::ffff:10.0.0.1]/", "http://trap.example/",
		"http://169.254.169.254/latest/meta-data/"} {
		n := newInternet(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) })
		g := newGuard(t, Options{
			Resolver: &names{
				answers: map[string][]string{"good.example": {"8.8.8.8"}, "trap.example": {"192.168.0.1"}},
			},
			Dial: n.dial,
		})
		if _, err := get(t, g, "http://good.example/"); !errors.As(err, new(*Refused)) {
			t.Errorf("%s: %v", to, err)
		}
		if len(n.dialed) != 1 {
			t.Errorf("%s: %d connections", to, len(n.dialed))
		}
	}
}

// TestAllow: what is listed may be reached, and nothing next to it.
func TestAllow(t *testing.T) {
	t.Parallel()
	answers := map[string][]string{
		"orders.internal": {
			"10.0.0.5",
		},
		"other.internal": {"10.0.0.6"},
		"localhost":      {"127.0.0.1 ::1"},
		"meta.internal":  {"169.254.169.254"},
		"nat.internal":   {"64:ff9b::169.254.169.254"},
	}
	for _, c := range []struct {
		allow, host string
		ok          bool
	}{
		{"orders.internal", "orders.internal", true},
		{"Orders.Internal.", "orders.internal:8443", true},
		{"orders.internal", "other.internal", false},
		{"orders.internal", "10.0.0.5", false},
		{"orders.internal:8443", "orders.internal:8443", true},
		{"orders.internal:8443", "orders.internal", false},
		{"10.0.0.5", "orders.internal", true},
		{"10.0.0.5", "other.internal", false},
		{"10.0.0.5:80", "10.0.0.5", true},
		{"10.0.0.5:80", "10.0.0.5:81", false},
		{"10.0.0.0/8", "other.internal", true},
		{"10.0.0.0/8", "[::ffff:10.0.0.5]", true},
		{"10.0.0.0/8", "[64:ff9b::10.0.0.5]", false},
		{"10.0.0.0/8", "localhost", false},
		{"localhost", "localhost:9", true},
		{"localhost", "127.0.0.1", false},
		{"::1", "[::1]", true},
		{"[::1]:80", "[::1]", true},
		{"fd00::/8", "[fd12::1]", true},
		{"169.254.0.0/16", "169.254.1.1", true},
		{"169.254.0.0/16", "169.254.169.254", false},
		{"0.0.0.0/0", "meta.internal", false},
		{"meta.internal", "meta.internal", false},
		{"169.254.0.0/16", "169.254.170.23", false},
		{"169.254.0.0/16", "169.254.42.42", false},
		{"169.254.0.0/16", "169.254.0.23", false},
		{"fd00::/8", "[fd20:ce::254]", false},
		{"fd00::/8", "[fd00:ec2::23]", false},
		{"fd00::/8", "[fd00:42::42]", false},
		{"fd20:ce::254", "[fd20:ce::254]", true},
		{"nat.internal", "nat.internal", false},
		{"169.254.169.254", "meta.internal", true},
		{"169.254.169.254/32", "169.254.169.254", true},
	} {
		n := newInternet(t, hello)
		g := newGuard(t, Options{Allow: []string{c.allow}, Resolver: &names{answers: answers}, Dial: n.dial})
		if _, err := get(t, g, "http://"+c.host+"/"); (err == nil) != c.ok || !c.ok && !errors.As(err, new(*Refused)) {
			t.Errorf("with %s: %s: %v", c.allow, c.host, err)
		}
	}
}

// TestOptions: an error names the option.
func TestOptions(t *testing.T) {
	t.Parallel()
	for _, allow := range []string{"", " ", "http://orders.internal", "orders.internal/x", "a b", "10.0.0.0/33",
		"10.0.0", "2130706433", "*.internal", "host:0", "host:99999", "host:http", "[fe80::1%eth0]:80",
		"::ffff:10.0.0.0/104"} {
		if _, err := New(Options{Allow: []string{"localhost", allow}}); err == nil ||
			!strings.HasPrefix(err.Error(), "allow[1]: ") {
			t.Errorf("%q: %v", allow, err)
		}
	}
	for _, proxy := range []string{"proxy:3128", "ftp://proxy", "http://", "http://user:secret@pro xy", "none"} {
		if _, err := New(Options{Proxy: proxy}); err == nil || !strings.HasPrefix(err.Error(), "proxy: ") ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", proxy, err)
		}
	}
}

// TestProxy: requests go through a proxy in a private network, and those to private hosts
// do not get that far. A name that only the proxy resolves is left to it.
func TestProxy(t *testing.T) {
	t.Parallel()
	proxied := newInternet(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "proxy: "+r.URL.String())
	})
	resolver := &names{
		answers: map[string][]string{
			"good.example":    {"8.8.8.8"},
			"trap.example":    {"10.0.0.1"},
			"orders.internal": {"10.0.0.1"},
		},
	}
	for _, o := range []Options{
		{Proxy: proxied.server.URL},
		{Proxy: "environment", FromEnvironment: func(*http.Request) (*url.URL,
			error) {
			return url.Parse(proxied.server.URL)
		}},
	} {
		o.Resolver, o.Allow = resolver, []string{"orders.internal", "later.internal"}
		g := newGuard(t, o)
		for _, u := range []string{"http://good.example/a?b=c", "http://unknown.example/", "http://8.8.8.8/",
			"http://orders.internal/", "http://later.internal/"} {
			if body, err := get(t, g, u); err != nil || body != "proxy: "+u {
				t.Errorf("%s: %q, %v", u, body, err)
			}
		}
		for _, u := range []string{"http://trap.example/", "http://10.0.0.1/", "http://2130706433/",
			"http://localhost/", "https://metadata.google.internal/", "http://vault/", "http://printer.local:631/"} {
			if body, err := get(t, g, u); !errors.As(err, new(*Refused)) {
				t.Errorf("%s: %q, %v", u, body, err)
			}
		}
	}
	// The environment may say that a host needs no proxy.
	direct := newGuard(t, Options{
		Proxy:           "environment",
		FromEnvironment: func(*http.Request) (*url.URL, error) { return nil, nil },
		Resolver:        resolver,
	})
	if _, err := get(t, direct, "http://trap.example/"); !errors.As(err, new(*Refused)) {
		t.Error(err)
	}
}

// TestBaseCannotLeadAround: a transport's own ways to dial are not kept.
func TestBaseCannotLeadAround(t *testing.T) {
	t.Parallel()
	n := newInternet(t, hello)
	base := &http.Transport{
		DialContext:    n.dial,
		DialTLSContext: n.dial,
		Proxy:          func(*http.Request) (*url.URL, error) { return url.Parse(n.server.URL) },
	}
	transport := newGuard(t, Options{}).Transport(base)
	for _, u := range []string{"http://127.0.0.1/", "https://127.0.0.1/"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		if res, err := transport.RoundTrip(r); !errors.As(err, new(*Refused)) {
			t.Errorf("%s: %v, %v", u, res, err)
		}
	}
	if len(n.dialed) > 0 {
		t.Errorf("dialed %s", <-n.dialed)
	}
}

// FuzzHosts: whatever host a URL has, no private address is dialed.
func FuzzHosts(f *testing.F) {
	for _, seed := range []string{"127.0.0.1", "[::1]", "0x7f.1", "017700000001", "localhost.", "a@b",
		"[::ffff:a00:1]", "2130706433", "１２７.0.0.1", "xn--a", "[fe80::1%25x]", "a:80:90", "%31%32%37.0.0.1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, host string) {
		u, err := url.Parse("http://" + host + "/")
		if err != nil {
			return
		}
		g, err := New(Options{
			Resolver: loopback{},
			Dial: func(_ context.Context, _, address string) (net.Conn, error) {
				a, err := netip.ParseAddrPort(address)
				if err != nil || !isPublic(a.Addr()) || a.Addr().IsLoopback() || a.Addr().IsPrivate() {
					t.Errorf("%q: dialed %s", host, address)
				}
				return nil, errors.New("not here")
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = g.Transport(nil).
			RoundTrip((&http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}}).WithContext(t.Context()))
		IsPrivate(u.Hostname())
	})
}

// loopback resolves every name to this machine.
type loopback struct{}

func (loopback) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::ffff:127.0.0.1")}, nil
}

// TestBothFamilies: a host that has addresses of both families is reached soon if one of them
// leads nowhere, and no attempt is left behind.
func TestBothFamilies(t *testing.T) {
	const six, four = "[2606:4700::1111]:443", "8.8.8.8:443"
	type dial func(ctx context.Context) error
	silent := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	fails := func(context.Context) error { return errors.New("refused") }
	works := func(context.Context) error { return nil }
	after := func(d time.Duration) dial {
		return func(ctx context.Context) error {
			select {
			case <-time.After(d):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	for name, c := range map[string]struct {
		six, four dial
		reached   string
		took      time.Duration
	}{
		"the first works":   {works, works, six, 0},
		"the first is slow": {after(200 * time.Millisecond), works, six, 200 * time.Millisecond},
		"slower":            {after(time.Second), works, four, 300 * time.Millisecond},
		"silent":            {silent, works, four, 300 * time.Millisecond},
		"refused":           {fails, works, four, 0},
		"both late":         {after(time.Second), after(time.Minute), six, time.Second},
		"the other refused": {after(time.Second), fails, six, time.Second},
		"neither":           {fails, fails, "", 0},
		"both silent":       {silent, silent, "", 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var open atomic.Int32
				g := newGuard(t, Options{
					Resolver: &names{answers: map[string][]string{"both.example": {"2606:4700::1111 8.8.8.8"}}},
					Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
						if err := map[string]dial{six: c.six, four: c.four}[address](ctx); err != nil {
							return nil, err
						}
						open.Add(1)
						return &conn{to: address, closed: func() { open.Add(-1) }}, nil
					},
				})
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				began := time.Now()
				got, err := g.DialContext(ctx, "tcp", "both.example:443")
				reached := ""
				if err == nil {
					reached = got.(*conn).to
					_ = got.Close()
				}
				if took := time.Since(began); reached != c.reached || took != c.took {
					t.Errorf("%q after %s, %v", reached, took, err)
				}
				synctest.Wait()
				if n := open.Load(); n != 0 {
					t.Errorf("%d connections are left", n)
				}
			})
		})
	}
}

// conn is a connection that is only counted.
type conn struct {
	net.Conn
	to     string
	closed func()
}

func (c *conn) Close() error { c.closed(); return nil }
