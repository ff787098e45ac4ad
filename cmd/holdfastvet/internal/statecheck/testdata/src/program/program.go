package main

// Nobody imports a program, so that an exported key is listed here or nowhere.

import "github.com/holdfast-agents/holdfast/state"

type counts struct{ N int }

var Exported = state.Register(state.Spec[counts]{Name: "acme.exported"}) // want `HF006`

func main() {}
