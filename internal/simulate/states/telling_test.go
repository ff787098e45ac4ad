package states_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/sharedstate"
	"github.com/holdfast-agents/holdfast/store"
)

// telling is a store that notes which changes a stream says were dropped: a page that names no version is merged
// against the one that it probably had, and where the two conflict, one side is dropped and told.
type telling struct {
	store.Store
	s *scene
}

// Commit commits, and notes the conflicts that the commit tells, unless it is surely not stored.
func (s telling) Commit(ctx context.Context, c *store.Commit) error {
	err := s.Store.Commit(ctx, c)
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrFenced) {
		return err
	}
	for _, r := range c.Records {
		if bytes.Contains(r, []byte("holdfast.state_conflict")) {
			s.s.told(r)
		}
	}
	return err
}

// marked finds the marks in a document.
var marked = regexp.MustCompile(`"((?:tool|page|patch)[0-9]+)"`)

// told notes the marks of which a record says that they were dropped.
func (s *scene) told(record []byte) {
	ev, err := agui.DecodeEvent(record)
	custom, is := ev.(agui.Custom)
	if err != nil || !is {
		s.wrong("a conflict is told by %s: %v", record, err)
		return
	}
	var value struct {
		Kept      string
		Conflicts []struct{ Page, Stored json.RawMessage }
	}
	if err := json.Unmarshal(custom.Value, &value); err != nil {
		s.wrong("a conflict is told as %s: %v", custom.Value, err)
		return
	}
	for _, c := range value.Conflicts {
		kept, lost := c.Page, c.Stored
		if value.Kept == sharedstate.ConflictAgent {
			kept, lost = lost, kept
		}
		for _, mark := range marked.FindAllSubmatch(lost, -1) {
			if !bytes.Contains(kept, mark[0]) {
				s.note(s.dropped, string(mark[1]))
			}
		}
	}
}
