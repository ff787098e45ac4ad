package thread

import (
	"fmt"
	"strings"
	"testing"
)

// TestNoteHappened: what a state holds of earlier calls is bounded, and each is there once.
func TestNoteHappened(t *testing.T) {
	var s State
	for i := range maxHappened + 5 {
		s.NoteHappened([]Happened{{Tool: "pay", Message: fmt.Sprint(i)}, {Tool: "pay", Message: fmt.Sprint(i)}})
	}
	if len(s.Happened) != maxHappened || s.Happened[0].Message != "5" || len(s.HappenedWith("pay")) != maxHappened || s.HappenedWith("look") != nil {
		t.Errorf("%d calls from %+v", len(s.Happened), s.Happened[0])
	}
	s.NoteHappened([]Happened{{Tool: "mail", Message: "only"}})
	for i := range maxHappened {
		s.NoteHappened([]Happened{{Tool: "pay", Message: fmt.Sprint("more", i)}})
	}
	if len(s.Happened) != maxHappened || len(s.HappenedWith("mail")) != 1 {
		t.Errorf("the only call of a tool is forgotten: %+v", s.Happened)
	}
	s.NoteHappened([]Happened{{Tool: "pay", Message: "long", Arguments: strings.Repeat("ä", 400), Result: strings.Repeat("x", 400)}})
	if last := s.Happened[maxHappened-1]; last.Arguments != strings.Repeat("ä", 150)+"…" || last.Result != strings.Repeat("x", 300)+"…" {
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
