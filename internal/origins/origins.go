// Package origins says which origins the interface of a tool (MCP Apps) may name: those that can stand in a browser's
// policy without changing what else it says. The source of the tools and the page that shows them agree on it.
package origins

import "regexp"

// Most bounds how many origins one interface names, which are in the address of its frame and in the
// frame's policy.
const Most = 100

// longest is the size of the longest origin: a scheme, a name of DNS and a port.
const longest = 270

var origin = regexp.MustCompile(`^(https?|wss?)://(\*\.)?[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)*(:[0-9]{1,5})?$`)

// Valid reports whether a text is an origin, such as https://api.example.com or https://*.example.com.
func Valid(text string) bool { return len(text) <= longest && origin.MatchString(text) }
