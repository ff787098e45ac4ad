package thread

import (
	"fmt"
	"strings"
	"testing"
)

// TestAllHappened: what a state holds of earlier calls is bounded, and each is there once.
func TestAllHappened(t *testing.T) {
	var s State
	for i := range maxHappened + 5 {
		s.Happened.Note([]Happened{{Tool: "pay", Message: fmt.Sprint(i)}, {Tool: "pay", Message: fmt.Sprint(i)}})
	}
	if len(s.Happened) != maxHappened || s.Happened[0].Message != "5" || len(s.Happened.With("pay")) != maxHappened ||
		s.Happened.With("look") != nil {
		t.Errorf("%d calls from %+v", len(s.Happened), s.Happened[0])
	}
	s.Happened.Note([]Happened{{Tool: "mail", Message: "only"}})
	for i := range maxHappened {
		s.Happened.Note([]Happened{{Tool: "pay", Message: fmt.Sprint("more", i)}})
	}
	if len(s.Happened) != maxHappened || len(s.Happened.With("mail")) != 1 {
		t.Errorf("the only call of a tool is forgotten: %+v", s.Happened)
	}
	s.Happened.Note([]Happened{
		{Tool: "pay", Message: "long", Arguments: strings.Repeat("ä", 400), Result: strings.Repeat("x", 400)},
	})
	if last := s.Happened[maxHappened-1]; last.Arguments != strings.Repeat("ä", 150)+"…" ||
		last.Result != strings.Repeat("x", 300)+"…" {
		t.Errorf("%+v", last)
	}
}

func TestTextOf(t *testing.T) {
	for content, want := range map[string]string{
		`"paid"`: "paid",
		`[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]`: "a\nb",
		`7`: "",
	} {
		if got := TextOf([]byte(content)); got != want {
			t.Errorf("%s: %q", content, got)
		}
	}
}
