//go:build !crashpoints

package loop

import "github.com/holdfast-agents/holdfast"

// crashPoint does nothing: only a build with the tag crashpoints can be killed at a
// commit.
func crashPoint(string, *holdfast.Commit) {}
