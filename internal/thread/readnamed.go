package thread

import (
	"context"
	"encoding/json"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
)

// maxNamed bounds the patches of a version that a client has named.
const maxNamed = 1 << 14

// SharedIfKept is [Reader.Shared] for a name that may be that of no version, or of one that was pruned: then
// it is nil.
func (rd Reader) SharedIfKept(ctx context.Context, key store.ThreadKey, id string) ([]byte, error) {
	if _, n := baseOf(id); n > maxNamed || agui.CheckID("stateVersion", id) != nil {
		return nil, nil
	}
	names := SharedParts(id)
	found, err := rd.Store.ValuesOf(ctx, key, store.KindBlob, names)
	if err != nil {
		return nil, ReadError(key, err)
	}
	if len(found) < len(names) {
		return nil, nil
	}
	parts := make([][]byte, len(found))
	for i := range found {
		parts[i] = found[i].Data
	}
	s, err := SharedOf(id, parts)
	if err != nil || !json.Valid(s.State) {
		return nil, nil // the name is that of something else
	}
	return s.State, nil
}
