package server

import "runtime/debug"

// modulePath is the module that the server is part of.
const modulePath = "github.com/holdfast-agents/holdfast"

// Version returns the version of Holdfast that this program was built with, as Go's build
// information has it; "(devel)" if it has none.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return versionIn(info)
	}
	return devel
}

// devel is the version of a build without one.
const devel = "(devel)"

func versionIn(info *debug.BuildInfo) string {
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path == modulePath && m.Version != "" {
			return m.Version
		}
	}
	return devel
}
