package server

import (
	"runtime/debug"
	"testing"
)

// TestVersionIn: the version is that of this module, whether it is the program's own or one
// that the program requires.
func TestVersionIn(t *testing.T) {
	for want, info := range map[string]*debug.BuildInfo{
		"v1.0.0": {Main: debug.Module{Path: modulePath, Version: "v1.0.0"}},
		"v1.1.0": {Main: debug.Module{Path: "example.com/shop", Version: "v7.0.0"},
			Deps: []*debug.Module{{Path: "example.com/x", Version: "v3.0.0"}, {Path: modulePath, Version: "v1.1.0"}}},
		"(devel)": {Main: debug.Module{Path: modulePath}},
	} {
		if got := versionIn(info); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
