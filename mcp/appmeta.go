package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/origins"
)

// The words of MCP Apps: what servers say of interfaces, and what is said of them here.

// extensionApps is the name of the extension.
const extensionApps = "io.modelcontextprotocol/ui"

// typeApp is the media type of an interface, and scheme how its URI begins.
const (
	typeApp = "text/html;profile=mcp-app"
	scheme  = "ui://"
)

// capabilityApps is what a client that shows interfaces says of it.
func capabilityApps() map[string]any { return map[string]any{"mimeTypes": []string{typeApp}} }

// Apps says that the interfaces of a server's tools are shown to people.
type Apps struct {
	// Network are the origins that interfaces may reach, such as "https://api.example.com" or
	// "https://*.example.com". An interface reaches those of them that it asks for. nil means all
	// that it asks for, an empty list none.
	Network []string `json:"network"`
}

func (a *Apps) validate() error {
	if a == nil {
		return nil
	}
	for _, o := range a.Network {
		if !origins.Valid(o) {
			return fmt.Errorf("apps: %q is no origin, such as https://api.example.com", o)
		}
	}
	return nil
}

// toolMeta is what a tool says of its interface.
type toolMeta struct {
	UI struct {
		ResourceURI string   `json:"resourceUri"`
		Visibility  []string `json:"visibility"`
	} `json:"ui"`
	Before string `json:"ui/resourceUri"` // as it was before the extension was final
}

// appContent is the content of an activity that shows what a call has brought, as AG-UI's frontends know it.
type appContent struct {
	Result      json.RawMessage `json:"result"`
	ResourceURI string          `json:"resourceUri"`
	ServerHash  string          `json:"serverHash"`
	ServerID    string          `json:"serverId"`
	ToolInput   json.RawMessage `json:"toolInput"`
	ToolName    string          `json:"toolName"`
	// Resource is the page, if it came with the result.
	Resource json.RawMessage `json:"resource,omitempty"`
}

// page is a page as a resource has it.
type page struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType"`
	Text     *string `json:"text"`
	Blob     string  `json:"blob"`
	Meta     struct {
		UI AppMeta `json:"ui"`
	} `json:"_meta"`
}

// AppMeta is what an interface asks for.
type AppMeta struct {
	// CSP are the origins that it may reach.
	CSP AppOrigins `json:"csp"`
	// PrefersBorder is whether it wants a border; nil if it does not say.
	PrefersBorder *bool `json:"prefersBorder,omitempty"`
}

// AppOrigins are the origins that an interface may reach. None are by default.
type AppOrigins struct {
	// ConnectDomains are for requests.
	ConnectDomains []string `json:"connectDomains,omitempty"`
	// ResourceDomains are for scripts, styles, images, fonts and media.
	ResourceDomains []string `json:"resourceDomains,omitempty"`
	// FrameDomains are for frames in it.
	FrameDomains []string `json:"frameDomains,omitempty"`
	// BaseURIDomains are for its base element.
	BaseURIDomains []string `json:"baseUriDomains,omitempty"`
}

// App is an interface: a page in HTML, and what it may reach.
type App struct {
	// HTML is the page. It is somebody else's, and belongs in a sandbox.
	HTML string `json:"html"`
	AppMeta
}

// isPage reports whether a resource is an interface.
func (p *page) isPage() bool {
	return strings.HasPrefix(p.URI, scheme) && strings.ReplaceAll(strings.ToLower(p.MIMEType), " ", "") == typeApp
}

// pageIn returns the interface that a piece of content is; nil for any other.
func pageIn(piece json.RawMessage) *page {
	var c struct {
		Type     string `json:"type"`
		Resource page   `json:"resource"`
	}
	if json.Unmarshal(piece, &c) != nil || c.Type != "resource" || !c.Resource.isPage() {
		return nil
	}
	return &c.Resource
}

// errPage is the error of a resource that is no interface.
var errPage = errors.New("the resource is no page of an interface")

// reaches reports whether interfaces may reach an origin.
func (a *Apps) reaches(o string) bool {
	return origins.Valid(o) && (a.Network == nil || slices.ContainsFunc(a.Network, func(allowed string) bool {
		if strings.EqualFold(allowed, o) {
			return true
		}
		before, domain, wild := strings.Cut(allowed, "*")
		host, same := strings.CutPrefix(strings.ToLower(o), strings.ToLower(before))
		return wild && same && strings.HasSuffix(host, strings.ToLower(domain))
	}))
}

// instead returns the piece of content that stands for a page that came with a result.
func instead(p *page) json.RawMessage {
	text := "[An interface that people are shown: " + p.URI + "]"
	raw, err := json.Marshal(map[string]string{"type": "text", "text": text})
	if err != nil {
		return json.RawMessage(`{"type":"text","text":""}`)
	}
	return raw
}

// RawResult returns what a result of one of the server's tools is for an interface: a result as MCP has it.
func RawResult(r holdfast.ToolResult) json.RawMessage {
	parts := r.Parts
	if parts == nil {
		parts = []holdfast.Part{{Type: holdfast.PartText, Text: r.Text}}
	}
	var out struct {
		Content    []map[string]any `json:"content"`
		Structured json.RawMessage  `json:"structuredContent,omitempty"`
		IsError    bool             `json:"isError,omitempty"`
	}
	out.Content, out.IsError = []map[string]any{}, r.Failed
	for _, p := range parts {
		text := bytes.TrimSpace([]byte(p.Text))
		switch {
		case p.Type == holdfast.PartText:
			out.Content = append(out.Content, map[string]any{"type": "text", "text": p.Text})
			// Structured content is a part of its own, or one whose text is the same.
			if len(text) > 0 && text[0] == '{' && json.Valid(text) && out.Structured == nil {
				out.Structured = text
			}
		case p.Source != nil && (p.Type == holdfast.PartImage || p.Type == holdfast.PartAudio):
			out.Content = append(out.Content, map[string]any{"type": string(p.Type), "data": p.Source.Value,
				"mimeType": p.Source.MIMEType})
		}
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return json.RawMessage(`{"content":[],"isError":true}`)
	}
	return raw
}
