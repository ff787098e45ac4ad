package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast/internal/origins"
	"github.com/holdfast-agents/holdfast/mcp/internal/wire"
)

// The pages of interfaces, read from their server when somebody looks at them.

// AppTool returns the tool that an interface of the server calls by the server's own name; false if
// there is none that is for interfaces, or they are not shown.
func (s *Server) AppTool(remote string) (*Tool, bool) {
	for _, t := range s.tools.Load().forApps {
		if t.remote == remote {
			return t, true
		}
	}
	return nil, false
}

// app returns the interface that a page is, which reaches what the options allow of what it asks for.
func (s *Server) app(p *page) (*App, error) {
	a := &App{AppMeta: p.Meta.UI}
	switch {
	case s.o.Apps == nil || !p.isPage():
		return nil, errPage
	case p.Text != nil:
		a.HTML = *p.Text
	default:
		text, err := base64.StdEncoding.DecodeString(p.Blob)
		if err != nil {
			return nil, errPage
		}
		a.HTML = string(text)
	}
	left := origins.Most
	for _, list := range []*[]string{&a.CSP.ConnectDomains, &a.CSP.ResourceDomains, &a.CSP.FrameDomains,
		&a.CSP.BaseURIDomains} {
		*list = slices.DeleteFunc(*list, func(o string) bool { return !s.o.Apps.reaches(o) })
		*list = (*list)[:min(len(*list), left)]
		left -= len(*list)
	}
	return a, nil
}

// AppIn returns the interface that an activity shows. content is that of the activity. The page is read from
// the server, unless it came with the result.
func (s *Server) AppIn(ctx context.Context, content json.RawMessage) (*App, error) {
	var shown appContent
	if err := json.Unmarshal(content, &shown); err != nil {
		return nil, errPage
	}
	if shown.Resource != nil {
		p := pageIn(shown.Resource)
		if p == nil {
			return nil, errPage
		}
		return s.app(p)
	}
	if !strings.HasPrefix(shown.ResourceURI, scheme) {
		return nil, errPage
	}
	return s.readApp(ctx, shown.ResourceURI)
}

// readApp reads the page of an interface.
func (s *Server) readApp(ctx context.Context, uri string) (*App, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.Timeout, errTimeout)
	defer cancel()
	x, err := s.conn.session(ctx)
	if err != nil {
		return nil, s.secrets.clean(err)
	}
	r := &wire.Request{Method: "resources/read"}
	if s.o.CallHeaders != nil {
		if r.Header, err = s.o.CallHeaders(ctx); err != nil {
			return nil, err
		}
	}
	raw, err := s.ask(ctx, x, r, map[string]any{"uri": uri})
	if err != nil {
		return nil, s.secrets.clean(err)
	}
	var read struct {
		Contents []page `json:"contents"`
	}
	if err := json.Unmarshal(s.secrets.with(r.Header).strip(raw), &read); err != nil {
		return nil, errPage
	}
	for i := range read.Contents {
		if read.Contents[i].URI == uri {
			return s.app(&read.Contents[i])
		}
	}
	return nil, errPage
}

// ask sends a request that is no call of a tool.
func (s *Server) ask(
	ctx context.Context, x *session, r *wire.Request, members map[string]any,
) (raw json.RawMessage, err error) {
	done := make(chan answer, 1)
	if !s.conn.start(func() {
		raw, err := x.request(ctx, r, &params{members: members})
		done <- answer{raw, err}
	}) {
		return nil, errClosed
	}
	a := <-done
	if a.err == nil && len(a.raw) > s.o.MaxMessageBytes {
		return nil, fmt.Errorf("it has more than %d bytes", s.o.MaxMessageBytes)
	}
	return a.raw, a.err
}
