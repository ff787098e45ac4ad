package owner

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/decide"
	"github.com/holdfast-agents/holdfast/internal/jsonpatch"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/sharedstate"
	"github.com/holdfast-agents/holdfast/store"
)

// The shared state that a page sends is the whole document, with what the page has changed in it. Others may
// have changed the document meanwhile, so the two are merged: against the version that the page had.

// sharing is a beginning as it merges the shared state.
type sharing struct{ b *beginning }

// share merges the state that the request has, if any, into the thread's. Where both have changed the same
// place, the agent's rule says what holds; it may refuse the request.
func (s sharing) share(ctx context.Context) error {
	sent, now, shown := s.b.p.in.State, s.b.r.Shared, s.b.st.StateShown
	s.b.st.StateWork = thread.StateWork{}
	if isUnchanged(sent) || jsonpatch.Alike(sent, now.State) {
		if shown == "" {
			return nil
		}
		return s.tellState(&jsonpatch.Merged{}, false)
	}
	base, err := s.had(ctx, shown)
	if err != nil {
		return err
	}
	rule := s.b.p.agent.Shared.Conflict()
	pageFirst := rule != sharedstate.ConflictAgent
	m, err := jsonpatch.ThreeWay(base, now.State, sent, pageFirst)
	if err != nil { // a name that no text of Go can have: there is nothing to merge by
		m = jsonpatch.Merged{Doc: now.State, Conflicts: []jsonpatch.Conflict{{Yours: sent, Theirs: now.State}},
			Count: 1}
		if pageFirst {
			m.Doc = sent
		}
	}
	if m.Count > 0 && rule == sharedstate.ConflictRefuse && !s.b.p.req.Policy.Chat {
		return errStateConflict(s.b.p.Key.Thread, now.ID, &m)
	}
	if m.Doc != nil {
		if c := now.Change(m.Doc, s.b.cfg.NewID("s"), s.b.st.Format, "", s.b.cfg.Now().Time()); c != nil {
			if err := s.b.p.agent.Shared.Check(ctx, c.State); err != nil {
				return err
			}
			s.b.r.Shared, s.b.st.Shared = c.Shared, c.ID
			s.b.c.Put = append(s.b.c.Put, c.Put)
		}
	}
	return s.tellState(&m, pageFirst)
}

// isUnchanged reports whether what a request has of the state says that it is as it was.
func isUnchanged(sent json.RawMessage) bool {
	return len(sent) == 0 || jsonpatch.Alike(sent, []byte("{}")) || jsonpatch.Alike(sent, []byte("null"))
}

// tellState has the stream say what holds, because it is not what the page or other watchers have, and
// what was dropped for it.
func (s sharing) tellState(m *jsonpatch.Merged, pageFirst bool) error {
	if m.Count > 0 {
		kept := sharedstate.ConflictAgent
		if pageFirst {
			kept = sharedstate.ConflictPage
		}
		ev := agui.Custom{Name: "holdfast.state_conflict", Value: thread.MustJSON(map[string]any{
			"kept": kept, "conflicts": shownConflicts(m), "count": m.Count,
		})}
		ev.Timestamp = s.b.cfg.Now().UnixMilli()
		if err := s.b.record(ev); err != nil {
			return err
		}
	}
	if s.b.p.d.Do == decide.Resume {
		return nil // its stream begins with a snapshot
	}
	return s.b.record(agui.StateRef{ID: s.b.st.Shared})
}

// newestLooked is how many checkpoints are looked at for what a page has seen.
const newestLooked = 64

// had returns the document that the page had when it changed it; nil if that is not known. A page that
// names no version has what streams have shown last, if its messages show that it has the whole history. If
// not, it has the document of the newest checkpoint of the part that it shows; those that were taken by hand do
// not count, because no stream has shown what they changed.
func (s sharing) had(ctx context.Context, shown string) ([]byte, error) {
	named := s.b.p.req.Policy.StateVersion
	if named == "" {
		named = cmp.Or(shown, s.b.r.Shared.Name())
		if has, all := s.shows(); !all {
			var err error
			if named, err = s.versionAt(ctx, has); err != nil {
				return nil, err
			}
		}
	}
	if named == s.b.r.Shared.Name() {
		return s.b.r.Shared.State, nil
	}
	return s.b.read.SharedIfKept(ctx, s.b.p.Key, named)
}

// versionAt returns the name of the version that streams had shown when one of some messages was the last one of
// the history.
func (s sharing) versionAt(ctx context.Context, has map[string]bool) (string, error) {
	newest, err := s.b.cfg.Store.Values(ctx, s.b.p.Key, store.KindCheckpoint, "", newestLooked)
	if err != nil {
		return "", thread.ReadError(s.b.p.Key, err)
	}
	for _, v := range newest {
		cp, err := thread.DecodeCheckpoint(v.Data)
		if err != nil {
			return "", thread.ReadError(s.b.p.Key, thread.AtCheckpoint(v.ID, err))
		}
		if cp.Source != thread.SourceUpdate && has[cp.State.Leaf] {
			return cmp.Or(cp.State.Shared, thread.NoState), nil
		}
	}
	return thread.NoState, nil
}

// shows returns the messages that the request shows it has: those of the history up to the last one that is in
// it or, for a page that is on another branch, those of that branch. all means that it has the whole history; so
// does a page that shows nothing of it, and brings only what is new.
func (s sharing) shows() (has map[string]bool, all bool) {
	h, last := s.b.p.History, -1
	has = map[string]bool{}
	brought := func(id string) bool {
		return slices.ContainsFunc(s.b.p.req.Compared.Results, func(m agui.Message) bool { return m.ID == id })
	}
	see := func(id string) {
		if i, on := h.Index[id]; on && !brought(id) {
			last = max(last, i)
		} else if h.Elsewhere[id] != "" {
			has[id] = true
		}
	}
	for i := range s.b.p.in.Messages {
		see(s.b.p.in.Messages[i].ID)
	}
	see(s.b.p.req.Policy.Since)
	if len(has) > 0 {
		return has, false
	}
	if last < 0 {
		last = len(h.Path) - 1
	}
	beside := []string{string(holdfast.RoleReasoning), string(holdfast.RoleActivity)} // pages need not send them
	for last+1 < len(h.Path) && (slices.Contains(beside, h.Path[last+1].Role) || brought(h.Path[last+1].ID)) {
		last++
	}
	for i := range last + 1 {
		has[h.Path[i].ID] = true
	}
	return has, last == len(h.Path)-1
}

// maxConflictText bounds a path or a value of a conflict that is told, in bytes.
const maxConflictText = 1024

// stateConflict is a conflict as it is told.
type stateConflict struct {
	Path string `json:"path"`
	// Page and Stored are the two values, unless they are long; absent where one side has none.
	Page   json.RawMessage `json:"page,omitempty"`
	Stored json.RawMessage `json:"stored,omitempty"`
	// Long means that a value was left out because of its length.
	Long bool `json:"long,omitempty"`
}

// shownConflicts returns the conflicts as they are told: not all of many, and no long values.
func shownConflicts(m *jsonpatch.Merged) []stateConflict {
	list := make([]stateConflict, 0, len(m.Conflicts))
	for _, c := range m.Conflicts {
		if len(c.Path) > maxConflictText {
			continue
		}
		told := stateConflict{Path: c.Path, Page: c.Yours, Stored: c.Theirs}
		for _, v := range []*json.RawMessage{&told.Page, &told.Stored} {
			if len(*v) > maxConflictText {
				*v, told.Long = nil, true
			}
		}
		list = append(list, told)
	}
	return list
}

// errStateConflict says that a page and somebody else have changed the same place of the state.
func errStateConflict(id, version string, m *jsonpatch.Merged) *holdfast.Error {
	where := "in one place that was"
	if m.Count > 1 {
		where = fmt.Sprintf("in %d places that were", m.Count)
	}
	e := holdfast.Errorf(codes.StateConflict, "The request changes the shared state %s changed meanwhile.", where).
		WithHint("Nothing was stored. Send the request again with the state as it is to be, and "+
			"forwardedProps.holdfast.stateVersion set to details.stateVersion: the version that it is changed from. "+
			"GET /threads/{thread}/state shows it. An agent whose conflicts are decided is never asked: state: "+
			"{conflict: page} or {conflict: agent}.").
		With("threadId", id).With("conflicts", shownConflicts(m)).With("count", m.Count)
	if version != "" {
		e = e.With("stateVersion", version)
	}
	return e
}
