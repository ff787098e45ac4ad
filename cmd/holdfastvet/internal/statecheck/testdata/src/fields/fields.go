package fields // want package:"registers .*"

import "github.com/holdfast-agents/holdfast/state"

type record struct {
	ID    string
	Key   string `json:"id"`
	Other string `json:"id"` // want `HF005: the fields Key and Other of record are both "id" in JSON, so encoding/json silently drops both`
	left
	right
	Tagged string
	Loses  string `json:"Tagged"`
	Skips  string `json:"-"`
	Sub    []sub
}

type left struct{ Shared, Name string }

type right struct {
	Shared string // want `HF005: the fields Shared and Shared of record`
	Own    string
}

type sub struct {
	A int `json:"n"`
	B int `json:"n,omitempty"` // want `HF005: the fields A and B of record.Sub\[\]`
}

var _ = state.Register(state.Spec[record]{Name: "acme.fields"})
