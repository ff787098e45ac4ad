package mcp

import (
	"encoding/json"
	"maps"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// methodAny stands for the method of a request of ours, because the SDK keeps the
// protocol's own methods for its types.
const methodAny = "holdfast/any"

// params are params of a request that the SDK does not read. It adds what each request says
// of the client.
type params struct {
	sdk.ParamsBase
	members map[string]any
}

// MarshalJSON implements [json.Marshaler].
func (p *params) MarshalJSON() ([]byte, error) {
	members := maps.Clone(p.members)
	if len(p.Meta) > 0 {
		members["_meta"] = p.Meta
	}
	return json.Marshal(members)
}

// result is a result as the server wrote it.
type result struct {
	sdk.ResultBase
	raw json.RawMessage
}

// UnmarshalJSON implements [json.Unmarshaler].
func (r *result) UnmarshalJSON(data []byte) error {
	r.raw = append(json.RawMessage(nil), data...)
	return nil
}
