//go:build !crashpoints

package loop

import "github.com/holdfast-agents/holdfast/store"

// crashPoint does nothing: only a build with the tag crashpoints can be killed at a
// commit.
func crashPoint(string, *store.Commit) {}
