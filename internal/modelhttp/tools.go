package modelhttp

import (
	"bytes"
	"slices"
	"sync/atomic"

	"github.com/holdfast-agents/holdfast"
)

// writtenTools remembers how the tools of the last request were written. Most requests to a
// model have the same ones, and writing them takes longer than all the rest.
type writtenTools struct{ last atomic.Pointer[toolsWritten] }

// toolsWritten is what of the tools is sent, as a copy, and its JSON.
type toolsWritten struct {
	specs []holdfast.ToolSpec
	json  []byte
}

// Tools writes a member with the tools. made returns them in the provider's form, which
// must depend on their names, descriptions and parameters only.
func (c *Client) Tools(b *Body, name string, specs []holdfast.ToolSpec, made func() any) {
	if w := c.tools.last.Load(); w != nil && slices.EqualFunc(w.specs, specs, sameTool) {
		b.Open(`"` + name + `":`)
		b.buf.Write(w.json)
		b.comma = true
		return
	}
	from := b.buf.Len()
	b.Member(name, made())
	if b.err != nil {
		return
	}
	_, written, _ := bytes.Cut(b.buf.Bytes()[from:], []byte(`":`))
	c.tools.last.Store(&toolsWritten{copied(specs), bytes.Clone(written)})
}

func sameTool(a, b holdfast.ToolSpec) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Parameters, b.Parameters)
}

// copied returns what sameTool compares.
func copied(specs []holdfast.ToolSpec) []holdfast.ToolSpec {
	own := make([]holdfast.ToolSpec, len(specs))
	for i := range specs {
		own[i] = holdfast.ToolSpec{
			Name:        specs[i].Name,
			Description: specs[i].Description,
			Parameters:  bytes.Clone(specs[i].Parameters),
		}
	}
	return own
}
