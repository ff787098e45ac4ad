package modelhttp

// Sending a request: connections, the proxy, redirects, and the memory that the body of a
// request takes while its answer streams in.

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/holdfast-agents/holdfast/internal/headers"
)

// direct as the name of a proxy means none.
const direct = "direct"

// setHTTP sets what makes the requests.
func (c *Client) setHTTP(o settings) error {
	if o.HTTP != nil && o.Proxy != "" {
		return errors.New("the model has both a proxy and an HTTP client: give the client the proxy")
	}
	if o.HTTP != nil {
		c.http = staying(o.HTTP)
		return nil
	}
	t := Transport()
	switch o.Proxy {
	case "":
	case direct:
		t.Proxy = nil
	default:
		u, err := url.Parse(o.Proxy)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5" ||
			u.RawQuery != "" || u.Fragment != "" {
			return errors.New("the model's proxy must be a URL like http://proxy:3128, or direct for none")
		}
		if password, set := u.User.Password(); set && password != "" {
			c.secrets = append(c.secrets, password)
		}
		t.Proxy = http.ProxyURL(u)
	}
	c.http = staying(&http.Client{Transport: t})
	return nil
}

// Transport returns a transport for the requests of one client.
func Transport() *http.Transport {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		t = &http.Transport{Proxy: http.ProxyFromEnvironment}
	}
	t = t.Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 256, 256
	// A stream occupies its connection for a long time, and its text comes in small
	// pieces.
	t.ReadBufferSize, t.WriteBufferSize = 2<<10, 1<<10
	return t
}

// staying returns a client that follows no redirects, unless it has a rule of its own: a
// redirect would take the conversation, and with it headers that hold keys, to wherever
// the provider says.
func staying(c *http.Client) *http.Client {
	if c.CheckRedirect != nil {
		return c
	}
	own := *c
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// post sends a request to BaseURL plus path, and returns a response with status 200.
func (c *Client) post(ctx context.Context, path string, body []byte) (*http.Response, error) {
	sent := &sending{body: body}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.BaseURL+path, sent.reader())
	if err != nil {
		return nil, err
	}
	r.ContentLength = int64(len(body))
	// With a way to send the body once more, net/http does so by itself if a connection
	// turns out to be dead before it was used; but with these headers also if it dies
	// after the request was read, and an answer would be paid for twice.
	if c.header.Get("Idempotency-Key") == "" && c.header.Get("X-Idempotency-Key") == "" {
		r.GetBody = func() (io.ReadCloser, error) { return sent.reader(), nil }
	}
	// An answer may take long, and the connection would keep the request in memory.
	defer sent.forget()
	r.Header = c.header.Clone()
	headers.AddTraceparent(ctx, r.Header)
	res, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		// Half an error's body is an error too.
		text, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
		return nil, c.refused(res, text)
	}
	return res, nil
}

// sending is a request's body, which is the whole conversation. It is released once the
// answer starts. A reader that has not reached its end keeps it until then, because a
// provider may answer before it has read everything.
type sending struct {
	mu   sync.Mutex
	body []byte
}

func (s *sending) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.body = nil
}

func (s *sending) reader() io.ReadCloser {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &bodyReader{rest: s.body}
}

type bodyReader struct{ rest []byte }

// Read implements io.Reader.
func (r *bodyReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		r.rest = nil
		return 0, io.EOF
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (r *bodyReader) Close() error { return nil }
