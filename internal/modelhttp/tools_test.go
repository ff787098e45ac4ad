package modelhttp

import (
	"encoding/json"
	"testing"

	"github.com/holdfast-agents/holdfast"
)

// TestToolsAreWrittenOnce: the same tools are made once and sent with the same bytes; any
// difference in the input makes them again, also one that is made in place.
func TestToolsAreWrittenOnce(t *testing.T) {
	c := &Client{tools: &writtenTools{}}
	made := 0
	body := func(specs []holdfast.ToolSpec) string {
		b := NewBody(map[string]any{"model": "m"})
		c.Tools(b, "tools", specs, func() any {
			made++
			return append([]holdfast.ToolSpec{}, specs...)[0].Name + string(specs[0].Parameters)
		})
		b.Open(`"messages":[`)
		b.Close("]")
		if _, err := c.Written(b); err != nil {
			t.Fatal(err)
		}
		if !json.Valid(b.Bytes()) {
			t.Fatalf("%s is not JSON", b.Bytes())
		}
		return string(b.Bytes())
	}
	specs := []holdfast.ToolSpec{{Name: `a":b`, Description: "d", Parameters: json.RawMessage(`{"type":"object"}`)}}
	first := body(specs)
	if second := body([]holdfast.ToolSpec{specs[0]}); second != first || made != 1 {
		t.Errorf("the same tools: made %d times, and sent\n%s\nafter\n%s", made, second, first)
	}
	specs[0].Parameters[2] = 'T'
	for i, change := range []func(){
		func() {},
		func() { specs[0].Name = "c" },
		func() { specs[0].Description = "e" },
		func() { specs = append(specs, specs[0]) },
	} {
		change()
		if body(specs); made != i+2 {
			t.Errorf("change %d: made %d times, want %d", i, made, i+2)
		}
	}
	c.Tools(NewBody(nil), "tools", specs[:1], func() any { return func() {} }) // cannot be written
	body(specs[:1])
	if made != 6 {
		t.Errorf("made %d times, want 6: what could not be written is not remembered", made)
	}
}
