// Command holdfast is a durable agent server that speaks AG-UI.
package main

import "github.com/holdfast-agents/holdfast/internal/command"

func main() { command.Main() }
