// Package mcp lets agents use the tools of MCP servers:
//
//	files, err := mcp.Open(mcp.Options{
//		Name:    "files",
//		Command: []string{"npx", "-y", "@modelcontextprotocol/server-filesystem", "/srv/docs"},
//	})
//
// Open does not wait for the server. [Server.Tools] has the tools of the last list that was
// read, and follows its changes; a server that is down, hangs or crashes fails its own calls
// and is connected to again.
//
// The outcome of a call that was cut off depends on the tool's effect, which is made from the
// server's annotations or set in the options. A request that was certainly not sent is a plain
// error; if the server may have started it, the error wraps [holdfast.ErrOutcomeUnknown].
package mcp
