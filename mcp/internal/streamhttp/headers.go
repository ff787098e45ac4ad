package streamhttp

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The protocol's headers.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerSession = "Mcp-Session-Id"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
)

// stateless is the first revision in which every request stands alone and says in its
// headers what it is.
const stateless = "2026-07-28"

// inBody is what headers repeat of a request's params.
type inBody struct {
	Name   string                     `json:"name"`
	TaskID string                     `json:"taskId"`
	Meta   map[string]json.RawMessage `json:"_meta"`
}

// setProtocolHeaders sets what the request's revision wants in headers.
func (c *Conn) setProtocolHeaders(h http.Header, m jsonrpc.Message) {
	version, session := c.negotiated()
	r, _ := m.(*jsonrpc.Request)
	var said inBody
	if r != nil && json.Unmarshal(r.Params, &said) == nil {
		var v string
		if json.Unmarshal(said.Meta[mcp.MetaKeyProtocolVersion], &v) == nil && v != "" {
			version = v
		}
	}
	if version != "" {
		h.Set(headerVersion, version)
	}
	if session != "" {
		h.Set(headerSession, session)
	}
	if r == nil || version < stateless {
		return
	}
	h.Set(headerMethod, r.Method)
	name := said.Name
	if strings.HasPrefix(r.Method, "tasks/") {
		name = said.TaskID
	}
	if name != "" {
		h.Set(headerName, Encode(name))
	}
}

// Encode returns a value as the protocol writes it into a header.
func Encode(value string) string {
	plain := value == strings.Trim(value, " \t") &&
		!(strings.HasPrefix(value, "=?base64?") && strings.HasSuffix(value, "?="))
	for _, r := range value {
		plain = plain && r >= ' ' && r <= '~'
	}
	if plain {
		return value
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(value)) + "?="
}
