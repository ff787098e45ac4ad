package modelhttp

// Writing the body of a request in an order that serves the provider's cache: what changes
// least comes first, each message is appended to what the request before had, and what may
// be different next time stands last.

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/failure"
	"github.com/holdfast-agents/holdfast/internal/prompt"
)

// Body is the body of a request while it is written, as pieces of JSON from the first to
// the last.
type Body struct {
	buf     bytes.Buffer
	encoder *json.Encoder
	ends    [prompt.Parts]int
	without [][2]int
	comma   bool // something stands before, so that what follows needs a comma
	err     error
}

// NewBody begins the body of a request with the settings, in the order of their names.
func NewBody(settings map[string]any) *Body {
	b := &Body{}
	b.encoder = json.NewEncoder(&b.buf)
	if settings == nil {
		settings = map[string]any{}
	}
	b.write(settings)
	b.buf.Truncate(b.buf.Len() - len("}"))
	b.comma = len(settings) > 0
	b.End(prompt.Settings)
	return b
}

// End says that a part of the prompt ends here, and with it the parts before it that have
// not ended.
func (b *Body) End(p prompt.Part) { b.ends[p] = b.buf.Len() }

// Open opens a member or an element, which the text begins: `"messages":[`, for example.
func (b *Body) Open(text string) {
	b.separate()
	b.buf.WriteString(text)
	b.comma = false
}

// Close closes what was opened last; the text is `]`, for example.
func (b *Body) Close(text string) {
	b.buf.WriteString(text)
	b.comma = true
}

// Member writes a member of an object.
func (b *Body) Member(name string, v any) {
	b.Open(`"` + name + `":`)
	b.write(v)
	b.comma = true
}

// Add writes an element of a list.
func (b *Body) Add(v any) {
	b.separate()
	b.write(v)
}

// AddRaw is Add for an element that append appends as JSON.
func (b *Body) AddRaw(append func([]byte) []byte) {
	b.separate()
	b.buf.Write(append(b.buf.AvailableBuffer()))
}

// AddMarked writes an element of a list, an object, with one more member at its end that is
// no part of the prompt.
func (b *Body) AddMarked(v any, name string, mark any) {
	b.Add(v)
	b.buf.Truncate(b.buf.Len() - len("}"))
	from := b.buf.Len()
	b.comma = true
	b.Member(name, mark)
	b.without = append(b.without, [2]int{from, b.buf.Len()})
	b.buf.WriteByte('}')
}

// Written ends a body, and returns it. The error is a [holdfast.ModelError].
func (c *Client) Written(b *Body) (*Body, error) {
	b.buf.WriteByte('}')
	if b.err == nil {
		return b, nil
	}
	return nil, &holdfast.ModelError{
		Kind:     failure.Invalid,
		Provider: c.Provider,
		Model:    c.Model,
		Public:   "The conversation cannot be sent to the model.",
		Err:      fmt.Errorf("write the request: %w", b.err),
	}
}

// Bytes returns the body.
func (b *Body) Bytes() []byte { return b.buf.Bytes() }

func (b *Body) separate() {
	if b.comma {
		b.buf.WriteByte(',')
	}
	b.comma = true
}

func (b *Body) write(v any) {
	from := b.buf.Len()
	if err := b.encoder.Encode(v); err != nil {
		b.err = cmp.Or(b.err, err)
		b.buf.Truncate(from)
		b.buf.WriteString("{}")
		return
	}
	b.buf.Truncate(b.buf.Len() - 1) // the encoder ends it with a line
}

// prompt returns what of the body the next request may repeat.
func (b *Body) prompt(c *Client) *prompt.Body {
	for p := range b.ends {
		if p > 0 {
			b.ends[p] = max(b.ends[p], b.ends[p-1])
		}
	}
	return &prompt.Body{
		Provider: c.Provider,
		Model:    c.Model,
		Bytes:    b.buf.Bytes(),
		Ends:     b.ends,
		Without:  b.without,
	}
}

// Tools returns tools in the order of their names: a frontend may list its own in any
// order, a hook may add some, and the cached prompt begins with them.
func Tools(specs []holdfast.ToolSpec) []holdfast.ToolSpec {
	byName := func(a, b holdfast.ToolSpec) int { return cmp.Compare(a.Name, b.Name) }
	if slices.IsSortedFunc(specs, byName) {
		return specs
	}
	return slices.SortedStableFunc(slices.Values(specs), byName)
}

// CacheKey is what OpenAI routes requests by, so that those of a thread find its cached
// prompt. It has at most 64 bytes, and says nothing about the thread.
func CacheKey(thread string) string {
	sum := sha256.Sum256([]byte(thread))
	return hex.EncodeToString(sum[:16])
}
