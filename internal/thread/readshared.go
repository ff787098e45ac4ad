package thread

import (
	"context"
	"fmt"

	"github.com/holdfast-agents/holdfast/store"
)

// SharedVersion reads a version of the shared state; the zero Shared for an empty id.
func (rd Reader) SharedVersion(ctx context.Context, key store.ThreadKey, id string) (Shared, error) {
	if id == "" {
		return Shared{}, nil
	}
	names := SharedParts(id)
	found, err := rd.Store.ValuesOf(ctx, key, store.KindBlob, names)
	if err != nil {
		return Shared{}, ReadError(key, err)
	}
	if len(found) < len(names) {
		return Shared{}, rd.missing(ctx, key, id)
	}
	parts := make([][]byte, len(found))
	for i := range found {
		parts[i] = found[i].Data
	}
	s, err := SharedOf(id, parts)
	if err != nil {
		return s, ReadError(key, err)
	}
	return s, nil
}

// Shared reads the document of a version of the shared state; nil for an empty id.
func (rd Reader) Shared(ctx context.Context, key store.ThreadKey, id string) ([]byte, error) {
	s, err := rd.SharedVersion(ctx, key, id)
	return s.State, err
}

// Blobs reads the blobs that a state refers to.
func (rd Reader) Blobs(ctx context.Context, key store.ThreadKey, st *State) ([]store.Value, error) {
	names := st.Blobs()
	found, err := rd.Store.ValuesOf(ctx, key, store.KindBlob, names)
	if err != nil {
		return nil, ReadError(key, err)
	}
	if len(found) < len(names) {
		return nil, rd.missing(ctx, key, names[0])
	}
	return found, nil
}

// SharedPatches reads the patches that versions are, by their names. Those that are not there any more are
// left out.
func (rd Reader) SharedPatches(ctx context.Context, key store.ThreadKey, ids []string) (map[string][]byte, error) {
	found, err := rd.Store.ValuesOf(ctx, key, store.KindBlob, ids)
	if err != nil {
		return nil, ReadError(key, err)
	}
	patches := make(map[string][]byte, len(ids))
	for _, v := range found {
		var p SharedPatch
		if err := Decode(v.Data, &p); err != nil {
			return nil, ReadError(key, fmt.Errorf("the shared state %s: %w", v.ID, err))
		}
		patches[v.ID] = p.Patch
	}
	return patches, nil
}

// SharedAfter returns a function that reads the shared state as the call with that result left it; false if
// the call did not change it.
func (rd Reader) SharedAfter(
	ctx context.Context, key store.ThreadKey,
) func(message string) (state []byte, changed bool, err error) {
	var versions map[string]string // by message
	return func(message string) ([]byte, bool, error) {
		if whole, there, err := rd.blob(ctx, key, SharedAfter(message)); there || err != nil {
			return whole, there, err
		}
		if versions == nil {
			all, err := rd.Store.Values(ctx, key, store.KindBlob, "", 0)
			if err != nil {
				return nil, false, ReadError(key, err)
			}
			versions = map[string]string{}
			for _, v := range all {
				var p SharedPatch
				if _, n := baseOf(v.ID); n > 0 && Decode(v.Data, &p) == nil && p.Message != "" {
					versions[p.Message] = v.ID
				}
			}
		}
		id, changed := versions[message]
		if !changed {
			return nil, false, nil
		}
		state, err := rd.Shared(ctx, key, id)
		return state, err == nil, err
	}
}
