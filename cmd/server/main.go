// Command server is Holdfast: a durable agent server that speaks AG-UI. The program is the
// one of cmd/holdfast, under the name of its folder.
package main

import "github.com/holdfast-agents/holdfast/internal/command"

func main() { command.Main() }
