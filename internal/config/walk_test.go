package config

import (
	"slices"
	"testing"
)

// TestReaders: each definition of the schema that is no mapping, list or word has a reader, and
// each reader has a definition.
func TestReaders(t *testing.T) {
	// Agents and middleware read these themselves.
	elsewhere := []string{"agentName", "modelName", "middlewareOptions", "money"}
	defs, all := readSchema().Defs, readers()
	for name, s := range defs {
		plain := s.Properties == nil && s.Others.shape == nil && s.Items == nil && s.Enum == nil && s.AnyOf == nil
		if plain && all[name] == nil && !slices.Contains(elsewhere, name) {
			t.Errorf("%s has no reader", name)
		}
	}
	for name := range all {
		if defs[name] == nil {
			t.Errorf("the schema does not define %s", name)
		}
	}
}
