package audit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// A thread as a document: everything that a store holds of it, as JSON that people can
// read and any store can import. The same thread always makes the same text.

// documentKind marks a document as a thread; documentVersion is the version of its form.
// The values in it have formats of their own.
const (
	documentKind    = "holdfast.thread"
	documentVersion = 1
)

// Document is all that a store holds of a thread, in a form that people and other stores
// can read. The inbox is not part of it: it is for the process that runs the thread.
type Document struct {
	Kind    string `json:"kind"`    // always holdfast.thread
	Version int    `json:"version"` // of the document's form
	Tenant  string `json:"tenant"`  // that the thread belonged to
	Thread  string `json:"thread"`  // its id

	Head     DocumentHead                   `json:"head"`     // without the state
	State    Bytes                          `json:"state"`    // of the head
	Messages []DocumentMessage              `json:"messages"` // the whole tree
	Values   map[store.Kind][]DocumentValue `json:"values"`   // by ascending ids
	Records  []DocumentRecord               `json:"records"`  // the live log
}

// DocumentHead is a head without its state. Its fields are those of [store.Head].
type DocumentHead struct {
	User      string      `json:"user"`              // who owns the thread
	Fence     store.Fence `json:"fence"`             // of the last acquisition
	Process   string      `json:"process,omitempty"` // that runs it; empty if none does
	ETag      string      `json:"etag"`              // what clients are told
	Next      uint64      `json:"next"`              // number of the next record
	UpdatedAt time.Time   `json:"updatedAt"`         // when it was last active
}

// DocumentMessage is a message in the tree.
type DocumentMessage struct {
	ID     string `json:"id"`               // of the message
	Parent string `json:"parent,omitempty"` // the message before it; empty for a first one
	Data   Bytes  `json:"data"`             // AG-UI JSON
}

// DocumentValue is a value of one kind.
type DocumentValue struct {
	ID   string `json:"id"`   // within its kind
	Data Bytes  `json:"data"` // as it is stored
}

// DocumentRecord is a record of the live log.
type DocumentRecord struct {
	Cursor store.Cursor `json:"cursor"` // number and tag
	Data   Bytes        `json:"data"`   // an AG-UI event
}

// Bytes are stored data. In a document, data that is JSON stands as it is; any other is an
// object whose only member is base64.
type Bytes []byte

// inBase64 is the form of data that is not JSON.
type inBase64 struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON implements [json.Marshaler].
func (b Bytes) MarshalJSON() ([]byte, error) {
	if _, ambiguous := b.base64(); json.Valid(b) && utf8.Valid(b) && !ambiguous {
		return b, nil
	}
	return json.Marshal(inBase64{append([]byte{}, b...)}) // not nil, which would be null
}

// UnmarshalJSON implements [json.Unmarshaler]. It removes the whitespace around tokens.
func (b *Bytes) UnmarshalJSON(data []byte) error {
	if decoded, ok := Bytes(data).base64(); ok {
		*b = decoded
		return nil
	}
	var compact bytes.Buffer
	err := json.Compact(&compact, data)
	*b = compact.Bytes()
	return err
}

// base64 returns what an object whose only member is base64 holds; false for anything else.
func (b Bytes) base64() ([]byte, bool) {
	if !bytes.Contains(b, []byte("base64")) {
		return nil, false
	}
	var in inBase64
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if d.Decode(&in) != nil || in.Base64 == nil {
		return nil, false
	}
	return in.Base64, true
}

// Export returns all that a store holds of a thread. It needs no engine and writes nothing.
// A thread of a newer version is refused with ErrVersionTooNew, because there may be more of
// it than this version knows.
func Export(ctx context.Context, db store.Store, key store.ThreadKey) (*Document, error) {
	all, err := readAll(ctx, db, key)
	if err != nil {
		return nil, err
	}
	for _, p := range all.checked() {
		if p.What == codes.VersionTooNew {
			return nil, fmt.Errorf("export thread %s: %s: %w", key, p.Detail, store.ErrVersionTooNew)
		}
	}
	return all.document(), nil
}

// document returns the thread as a document.
func (all *everything) document() *Document {
	h := all.head
	d := &Document{
		Kind:    documentKind,
		Version: documentVersion,
		Tenant:  all.key.Tenant,
		Thread:  all.key.Thread,
		Head: DocumentHead{
			User:      h.User,
			Fence:     h.Fence,
			Process:   h.Process,
			ETag:      thread.PublicETag(h.ETag),
			Next:      h.Next,
			UpdatedAt: h.UpdatedAt,
		},
		State:    h.State,
		Messages: []DocumentMessage{},
		Values:   map[store.Kind][]DocumentValue{},
		Records:  []DocumentRecord{},
	}
	for _, m := range all.messages {
		d.Messages = append(d.Messages, DocumentMessage{ID: m.ID, Parent: m.Parent, Data: m.Data})
	}
	for kind, values := range all.values {
		for _, v := range values {
			d.Values[kind] = append(d.Values[kind], DocumentValue{ID: v.ID, Data: v.Data})
		}
	}
	for _, r := range all.records {
		d.Records = append(d.Records, DocumentRecord{Cursor: r.Cursor, Data: r.Data})
	}
	return d
}

// Write writes a document as indented JSON. The same thread always makes the same text.
func (d *Document) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(d); err != nil {
		return fmt.Errorf("write the document: %w", err)
	}
	return nil
}

// errDocument means that a document cannot be imported by this version.
var errDocument = errors.New("the document cannot be imported")

// ReadDocument reads what Write wrote. It returns an error for anything that is not a
// document of a thread, and ErrVersionTooNew for one of a newer version.
func ReadDocument(r io.Reader) (*Document, error) {
	d := &Document{}
	in := json.NewDecoder(r)
	if err := in.Decode(d); err != nil {
		return nil, fmt.Errorf("%w: %w", errDocument, err)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: something follows its end", errDocument)
	}
	return d, d.check()
}

// check checks what the document says about itself.
func (d *Document) check() error {
	switch {
	case d.Kind != documentKind:
		return fmt.Errorf("%w: its kind is %q, not %q: it is not an exported thread", errDocument, d.Kind, documentKind)
	case d.Version > documentVersion:
		return fmt.Errorf("%w: it has version %d, this program reads up to %d: %w", errDocument, d.Version,
			documentVersion, store.ErrVersionTooNew)
	case d.Version < 1 || d.Thread == "" || d.Head.Next < 1 || d.Head.Fence == (store.Fence{}):
		return fmt.Errorf("%w: its version, thread or head is missing", errDocument)
	}
	return nil
}

// key returns the key of the thread that was exported.
func (d *Document) key() store.ThreadKey {
	return store.ThreadKey{Tenant: d.Tenant, Thread: d.Thread}
}

// everything returns the thread that the document holds, under the given key.
func (d *Document) everything(key store.ThreadKey) (*everything, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	h := d.Head
	all := &everything{
		key: key, values: map[store.Kind][]store.Value{},
		head: &store.Head{
			Key:       key,
			User:      h.User,
			Fence:     h.Fence,
			Process:   h.Process,
			ETag:      h.ETag,
			Next:      h.Next,
			UpdatedAt: h.UpdatedAt,
			State:     d.State,
		},
	}
	for _, m := range d.Messages {
		all.messages = append(all.messages, store.Message{ID: m.ID, Parent: m.Parent, Data: m.Data})
	}
	for _, r := range d.Records {
		all.records = append(all.records, store.Record{Cursor: r.Cursor, Data: r.Data})
	}
	for kind, values := range d.Values {
		if !slices.Contains(store.Kinds(), kind) {
			return nil, fmt.Errorf("%w: it has values of the kind %q, which is not known", errDocument, kind)
		}
		for _, v := range values {
			all.values[kind] = append(all.values[kind], store.Value{Kind: kind, ID: v.ID, Data: v.Data})
		}
		slices.SortFunc(all.values[kind], func(a, b store.Value) int { return cmp.Compare(a.ID, b.ID) })
	}
	return all, all.restamp()
}
