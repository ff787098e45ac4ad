package thread

import (
	"fmt"
	"slices"

	"github.com/holdfast-agents/holdfast/internal/agui"
)

// Count returns how many records the archive stands for.
func (a *ArchivedLog) Count() uint64 {
	n := uint64(0)
	for i := range a.Entries {
		n += a.Entries[i].records()
	}
	return n
}

// Check describes what is wrong with an archive of the given run, or returns "" if
// nothing is. t must hold the texts of the run's thread.
func (a *ArchivedLog) Check(run string, t *Texts) string {
	if a.Run != run || len(a.Entries) == 0 || len(a.Tags) == 0 || a.Tags[0].From != a.First {
		return fmt.Sprintf("it is that of run %q with %d entries from record %d on", a.Run, len(a.Entries), a.First)
	}
	var events []agui.Event
	for i := range a.Entries {
		n := &a.Entries[i]
		end := n.Offset
		for _, length := range n.Lengths {
			if end += length; length < 0 || n.Offset < 0 {
				return fmt.Sprintf("entry %d has a negative length", i)
			}
		}
		// The entries of a pruned message have no text.
		// The entries of a pruned message have no text.
		if whole, there := t.items[itemKey{n.Kind, n.ID}]; there && end > len(whole) {
			return fmt.Sprintf("entry %d has %d bytes of %s, which has %d", i, end, n.ID, len(whole))
		}
		ev, err := EventOf(n.data(0, t))
		if err != nil {
			return fmt.Sprintf("entry %d: %v", i, err)
		}
		events = append(events, ev)
	}
	if err := agui.Verify(slices.Values(events)); err != nil {
		return err.Error()
	}
	return ""
}

// EventOf decodes a record of a log. A snapshot, which a log stores as a reference, is
// returned as that reference; a large result is returned with empty content.
func EventOf(data []byte) (agui.Event, error) {
	if ref, ok := agui.RefOf(data); ok {
		switch agui.TypeOf(data) {
		case agui.TypeStateSnapshot:
			return agui.StateRef{ID: ref}, nil
		case agui.TypeMessagesSnapshot:
			return agui.MessagesRef{Leaf: ref}, nil
		default:
			data = agui.ExpandResult(data, []byte(`""`))
		}
	}
	return agui.DecodeEvent(data)
}
