package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/schema"
	"github.com/holdfast-agents/holdfast/internal/strictjson"
	"github.com/holdfast-agents/holdfast/mcp/internal/wire"
)

// The list of a server's tools: read in one go, checked, named, sorted, and from then on
// never changed. A changed list is another one.

// log reports what is used of the list and what is not.
func (l *listing) log(log *slog.Logger) {
	for _, t := range l.tools {
		t := t.(*Tool)
		log.Debug("a tool of an MCP server", "tool", t.spec.Name, "effect", t.spec.Effect, "why", t.why)
	}
	for _, r := range l.refused {
		log.Warn("a tool of an MCP server is not used", "tool", r.Name, "why", r.Why)
	}
	if l.more > 0 {
		log.Warn("more tools of an MCP server are not used", "tools", l.more)
	}
	if l.cut {
		log.Warn("the list of an MCP server's tools is too long; the rest of it was not read")
	}
}

// maxPages bounds the pages of a list, should a server never come to an end.
const maxPages = 1000

// list reads the list of tools.
func (s *Server) list(ctx context.Context, x *session) (*listing, error) {
	r := &reading{o: &s.o, listing: &listing{read: true}, modern: x.modern(), seen: map[string]bool{}}
	cursor, size := "", 0
	for range maxPages {
		p := &params{members: map[string]any{}}
		if cursor != "" {
			p.members["cursor"] = cursor
		}
		raw, err := x.request(ctx, &wire.Request{Method: "tools/list"}, p)
		if err != nil {
			return nil, fmt.Errorf("its tools cannot be listed: %w", err)
		}
		raw = s.secrets.strip(raw)
		if size += len(raw); size > s.o.MaxMessageBytes {
			return nil, fmt.Errorf("its list of tools is larger than %d bytes", s.o.MaxMessageBytes)
		}
		next, err := r.page(raw)
		if err != nil {
			return nil, fmt.Errorf("its list of tools cannot be read: %w", err)
		}
		if next == "" || next == cursor || r.listing.cut {
			break
		}
		cursor = next
	}
	s.choose(r.listing, r.used, r.modern)
	return r.listing, nil
}

// choose makes tools of what is used of the server's offers.
func (s *Server) choose(l *listing, used []offered, modern bool) {
	names, taken := s.names(used), map[string]bool{}
	for _, o := range used {
		t, err := s.tool(o, names[o.Name], modern)
		if err == nil && taken[names[o.Name]] {
			err = errors.New("its name here would be that of another tool")
		}
		taken[names[o.Name]] = true
		if err != nil {
			l.refuse(o.Name, err)
			continue
		}
		if s.o.Apps != nil && t.takeInterface(o.Meta) {
			l.forApps = append(l.forApps, t)
		}
		if !t.hidden {
			l.tools = append(l.tools, t)
		}
	}
	slices.SortFunc(l.tools, func(a, b holdfast.Tool) int {
		return strings.Compare(a.(*Tool).spec.Name, b.(*Tool).spec.Name)
	})
}

// maxName is how long a tool's name may be for every provider of models.
const maxName = 64

// names returns what models call the tools: server_tool, with a hash of the server's name
// for it where that would be too long or two would be the same.
func (s *Server) names(used []offered) map[string]string {
	plain := func(name string) string { return s.o.Name + "_" + strings.ReplaceAll(name, ".", "_") }
	count := map[string]int{}
	for _, o := range used {
		count[plain(o.Name)]++
	}
	names := make(map[string]string, len(used))
	for _, o := range used {
		name := plain(o.Name)
		ours := !strings.Contains(o.Name, ".") // then nobody has a better right to it
		if len(name) > maxName || count[name] > 1 && !ours {
			sum := sha256.Sum256([]byte(o.Name))
			hash := "_" + hex.EncodeToString(sum[:4])
			name = name[:min(len(name), maxName-len(hash))] + hash
		}
		names[o.Name] = name
	}
	return names
}

// tool makes a tool of what the server offers.
func (s *Server) tool(o offered, name string, modern bool) (*Tool, error) {
	parameters, err := canonical(o.InputSchema)
	if err != nil {
		return nil, err
	}
	t := &Tool{server: s, remote: o.Name, annotations: compact(o.Annotations)}
	if modern && s.o.URL != "" {
		if t.headers, err = paramHeaders(parameters); err != nil {
			return nil, err
		}
	}
	var hints struct {
		Title      string `json:"title"`
		ReadOnly   bool   `json:"readOnlyHint"`
		Idempotent bool   `json:"idempotentHint"`
	}
	_ = json.Unmarshal(o.Annotations, &hints) // what is no hint says nothing
	t.spec = holdfast.ToolSpec{
		Name:        name,
		Description: o.Description,
		Parameters:  parameters,
		InDoubt:     s.o.InDoubt,
		Timeout:     s.o.MaxDuration + 10*time.Second, // the bounds of the options are to come first
	}
	for _, title := range []string{o.Title, hints.Title} {
		if t.spec.Description == "" {
			t.spec.Description = title
		}
	}
	t.spec.Effect, t.why = s.effect(o.Name, hints.ReadOnly, hints.Idempotent)
	return t, nil
}

// effect returns the effect of a tool, and why it is that.
func (s *Server) effect(tool string, readOnly, idempotent bool) (holdfast.Effect, string) {
	switch {
	case s.o.Effects[tool] != "":
		return s.o.Effects[tool], "the configuration says so for this tool"
	case s.o.Effect != "":
		return s.o.Effect, "the configuration says so for this server"
	case readOnly:
		return holdfast.EffectPure, "the server says that it only reads (readOnlyHint)"
	case idempotent:
		return holdfast.EffectIdempotent, "the server says that calling it again changes nothing more (idempotentHint)"
	}
	return holdfast.EffectOnce, "the server does not say that it can be called again"
}

// canonical returns a schema of arguments with its members sorted, so that the same list
// makes the same request to a model, and with its numbers as they were.
func canonical(raw json.RawMessage) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var doc map[string]any
	if err := d.Decode(&doc); err != nil || doc == nil {
		return nil, errors.New("it has no schema of its arguments (inputSchema), or one that is no object")
	}
	if doc["type"] == nil {
		doc["type"] = "object"
	}
	if doc["type"] != "object" {
		return nil, errors.New("its arguments (inputSchema) are not an object")
	}
	text := strictjson.Canonical(doc)
	if _, err := schema.Compile(text); err != nil {
		return nil, fmt.Errorf("the schema of its arguments (inputSchema) cannot be used: %w", err)
	}
	return text, nil
}

// compact returns JSON without spaces; null if it is no object.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if len(raw) == 0 || raw[0] != '{' || json.Compact(&b, raw) != nil {
		return nil
	}
	return b.Bytes()
}
