package thread

import (
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
)

// answered is the log of an answer of n pieces, and its message.
func answered(n int, piece string) (records []store.Record, message store.Message) {
	add := func(data string) {
		records = append(records, store.Record{
			Cursor: store.Cursor{Number: uint64(len(records) + 1), Tag: "t"}, Data: []byte(data),
		})
	}
	add(`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`)
	add(`{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`)
	for range n {
		add(string(agui.AppendDelta(nil, agui.TypeTextMessageContent, "m", piece)))
	}
	add(`{"type":"TEXT_MESSAGE_END","messageId":"m"}`)
	add(`{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`)
	return records, store.Message{
		ID: "m", Data: []byte(`{"id":"m","role":"assistant","content":"` + strings.Repeat(piece, n) + `"}`),
	}
}

// TestDamagedArchive: an archive whose numbers are damaged is one whose text is not there, from every cursor.
func TestDamagedArchive(t *testing.T) {
	records, message := answered(3, "word ")
	for _, c := range []struct {
		offset  int
		lengths []int
	}{{-5, []int{5, 5, 5}}, {0, []int{5, -10, 5}}, {0, []int{20, -5, -5}}, {0, []int{1 << 62, 1 << 62}},
		{5, []int{5, 6}}} {
		texts, err := TextsOf([]store.Message{message})
		if err != nil {
			t.Fatal(err)
		}
		a := ArchiveRun("r", records, texts)
		at := 2
		if a.Entries[at].Kind != agui.TypeTextMessageContent {
			t.Fatalf("%+v", a.Entries)
		}
		a.Entries[at].Offset, a.Entries[at].Lengths = c.offset, c.lengths
		for n := range uint64(5) {
			after := store.Cursor{}
			if n > 0 {
				after = store.Cursor{Number: n, Tag: "t"}
			}
			if shown, held := a.After(after, 100, texts); held && n < 4 {
				t.Errorf("%d %v after %d: %q", c.offset, c.lengths, n, shown)
			}
		}
		if len(c.lengths) == 3 && a.Check("r", texts) == "" {
			t.Errorf("%d %v: nothing is wrong", c.offset, c.lengths)
		}
	}
}
