package http

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// The routes behind CopilotKit's list of threads and its inspector. CopilotKit's own runtime
// has them in memory or as a paid service; here they show and change the same threads as the
// routes below /threads. A thread that it calls archived is hidden here, and a thread's name
// is its title.

// copilotKitThreads serves these routes.
type copilotKitThreads struct {
	kit     *copilotKit
	threads *threadAPI
	upkeep  Upkeep
}

// copilotKitThread is a thread as CopilotKit's list shows it.
type copilotKitThread struct {
	ID             string    `json:"id"`
	Name           *string   `json:"name"`
	AgentID        string    `json:"agentId"`
	Archived       bool      `json:"archived"`
	CreatedAt      time.Time `json:"createdAt"`
	UpdatedAt      time.Time `json:"updatedAt"`
	OrganizationID string    `json:"organizationId"`
	CreatedByID    string    `json:"createdById"`
}

// asCopilotKit returns a thread in CopilotKit's form; id is how the client names its agent.
func asCopilotKit(info *threads.Info, who holdfast.Principal, agent string) copilotKitThread {
	t := copilotKitThread{
		ID:             info.ID,
		AgentID:        agent,
		Archived:       info.Hidden,
		CreatedAt:      info.CreatedAt,
		UpdatedAt:      info.UpdatedAt,
		OrganizationID: who.Tenant,
		CreatedByID:    who.User,
	}
	if info.Title != "" {
		t.Name = &info.Title
	}
	return t
}

// copilotKitThreadList is a page of threads.
type copilotKitThreadList struct {
	Threads []copilotKitThread `json:"threads"`
	// NextCursor asks for the next page; null after the last one.
	NextCursor *string `json:"nextCursor"`
}

// copilotKitPages bounds how many pages of threads are read for one answer. With many
// threads of other agents, an answer may have fewer than there is room for, and a cursor.
const copilotKitPages = 10

// listThreads is GET /copilotkit/threads?agentId=&includeArchived=&limit=&cursor=.
func (k *copilotKitThreads) listThreads(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	query := r.URL.Query()
	limit, err := limitParam(r)
	if err != nil {
		return err
	}
	var before time.Time
	if s := query.Get("cursor"); s != "" {
		if before, err = time.Parse(time.RFC3339Nano, s); err != nil {
			return exchange.Invalid("cursor", "The cursor cannot be read.",
				"Send the nextCursor of the last answer, or leave it out.")
		}
	}
	asked, agent := query.Get("agentId"), ""
	if asked != "" {
		if agent, err = k.kit.agent(asked); err != nil {
			return err
		}
	}
	hidden := query.Get("includeArchived") == "true"
	list := copilotKitThreadList{Threads: []copilotKitThread{}}
	for range copilotKitPages {
		page, err := k.threads.threads.Threads(r.Context(), who, before, limit)
		if err != nil {
			return err
		}
		for i := range page {
			before = page[i].UpdatedAt
			if agent != "" && page[i].Agent != agent || page[i].Hidden && !hidden {
				continue
			}
			list.Threads = append(list.Threads, asCopilotKit(&page[i], who, cmp.Or(asked, page[i].Agent)))
			if len(list.Threads) == limit {
				break
			}
		}
		if len(list.Threads) < limit && len(page) < limit {
			exchange.WriteJSON(w, http.StatusOK, list)
			return nil
		}
		if len(list.Threads) == limit {
			break
		}
	}
	next := before.Format(time.RFC3339Nano)
	list.NextCursor = &next
	exchange.WriteJSON(w, http.StatusOK, list)
	return nil
}

// copilotKitChange is the body of the routes that change a thread. AgentID is how the client
// names the thread's agent.
type copilotKitChange struct {
	AgentID  string  `json:"agentId"`
	Name     *string `json:"name"`
	Archived *bool   `json:"archived"`
}

// patchThread is PATCH /copilotkit/threads/{thread}.
func (k *copilotKitThreads) patchThread(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	var in copilotKitChange
	if err := k.threads.bodies.ReadObject(w, r, &in, "agentId", "name", "archived"); err != nil {
		return err
	}
	info, err := k.threads.describe(r, who, threads.Description{Title: in.Name, Hidden: in.Archived})
	if err != nil {
		return err
	}
	exchange.WriteJSON(w, http.StatusOK, asCopilotKit(info, who, cmp.Or(in.AgentID, info.Agent)))
	return nil
}

// postArchive is POST /copilotkit/threads/{thread}/archive.
func (k *copilotKitThreads) postArchive(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	var in copilotKitChange
	if err := k.threads.bodies.ReadObject(w, r, &in, "agentId"); err != nil {
		return err
	}
	hidden := true
	info, err := k.threads.describe(r, who, threads.Description{Hidden: &hidden})
	if err != nil {
		return err
	}
	exchange.WriteJSON(w, http.StatusOK, map[string]any{"threadId": info.ID, "archived": true})
	return nil
}

// deleteThread is DELETE /copilotkit/threads/{thread}.
func (k *copilotKitThreads) deleteThread(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	var in copilotKitChange
	if err := k.threads.bodies.ReadObject(w, r, &in, "agentId"); err != nil {
		return err
	}
	etag, err := exchange.IfMatch(r)
	if err != nil {
		return err
	}
	thread := param(r, "thread")
	if _, err := k.upkeep.Delete(r.Context(), who, thread, etag, false); err != nil {
		return err
	}
	exchange.WriteJSON(w, http.StatusOK, map[string]any{"threadId": thread, "deleted": true})
	return nil
}

// copilotKitMessage is a message as CopilotKit's inspector reads it.
type copilotKitMessage struct {
	ID         string             `json:"id"`
	Role       string             `json:"role"`
	Content    json.RawMessage    `json:"content,omitempty"`
	ToolCalls  []copilotKitCalled `json:"toolCalls,omitempty"`
	ToolCallID string             `json:"toolCallId,omitempty"`
}

// copilotKitCalled is a call that a message makes.
type copilotKitCalled struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"`
}

// getMessages is GET /copilotkit/threads/{thread}/messages.
func (k *copilotKitThreads) getMessages(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	messages, err := k.threads.threads.Messages(r.Context(), who, param(r, "thread"))
	if err != nil {
		return err
	}
	return writeMessages(w, r, k.threads.log, "{", func(yield func(json.RawMessage, error) bool) {
		for raw, err := range messages {
			var shown json.RawMessage
			if err == nil {
				shown, err = inCopilotKit(raw)
			}
			if !yield(shown, err) {
				return
			}
		}
	}, "}\n")
}

// inCopilotKit returns a message in CopilotKit's form.
func inCopilotKit(raw json.RawMessage) (json.RawMessage, error) {
	m, err := agui.DecodeMessage(raw)
	if err != nil {
		return nil, err
	}
	out := copilotKitMessage{ID: m.ID, Role: m.Role, Content: m.Content, ToolCallID: m.ToolCallID}
	for _, c := range m.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, copilotKitCalled{c.ID, c.Function.Name, c.Function.Arguments})
	}
	text, err := encoded(out)
	return json.RawMessage(text), err
}

// getState is GET /copilotkit/threads/{thread}/state.
func (k *copilotKitThreads) getState(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	state, err := k.threads.threads.State(r.Context(), who, param(r, "thread"))
	if err != nil {
		return err
	}
	exchange.WriteJSON(w, http.StatusOK, map[string]any{"state": state.State})
	return nil
}

// getEvents is GET /copilotkit/threads/{thread}/events: the events of the newest
// runs that have ended, oldest first. Of a run that is under way, the page shows the stream.
// It counts as a stream, because it reads as much as several.
func (k *copilotKitThreads) getEvents(w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
	thread := param(r, "thread")
	closed, err := k.kit.runs.out.streams.OpenStream(who)
	if err != nil {
		return err
	}
	defer closed()
	runs, err := k.threads.threads.Runs(r.Context(), who, thread, "", defaultLimit)
	if err != nil {
		return err
	}
	next, stop := iter.Pull2(k.eventsOf(r.Context(), who, thread, runs))
	defer stop()
	// A failure before the first event is an error like any other.
	event, err, more := next()
	if err != nil {
		return err
	}
	exchange.JSONHeader(w, http.StatusOK)
	// An error of writing means that the client went away or does not read.
	out := bufio.NewWriterSize(w, maxBuffer)
	_, failed := out.WriteString(`{"events":[`)
	for separator := ""; more && failed == nil; separator = "," {
		_, err1 := out.WriteString(separator)
		_, err2 := out.Write(event)
		failed = errors.Join(err1, err2)
		event, err, more = next()
		if err != nil {
			if r.Context().Err() == nil {
				k.threads.log.Warn("answer cut in the middle", "path", r.URL.Path, "error", err)
			}
			panic(http.ErrAbortHandler)
		}
	}
	_, _ = out.WriteString("]}\n")
	_ = out.Flush()
	return nil
}

// eventsOf returns the events of the runs that have ended, those of the last run of the list
// first. They are read as they are used; after an error there is no more.
func (k *copilotKitThreads) eventsOf(
	ctx context.Context, who holdfast.Principal, thread string, runs []threads.Run,
) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, run := range slices.Backward(runs) {
			if run.EndedAt.IsZero() {
				continue
			}
			reply, err := k.kit.runs.runs.Events(ctx, who, thread, run.ID, store.Cursor{}, agui.DialectLegacy)
			if err != nil {
				yield(nil, err)
				return
			}
			if reply == nil {
				continue
			}
			for frames, err := range reply.Whole() {
				if err != nil {
					yield(nil, err)
					return
				}
				if len(frames) > 0 && frames[0].ID == "" {
					break // the run's log is not kept, or is another thread's: these are snapshots
				}
				for i := range frames {
					if !yield(frames[i].Data, nil) {
						return
					}
				}
			}
		}
	}
}
