package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/server"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// conditional are the routes that take If-Match, each with a request that it does if the ETag is the
// thread's. T is where the thread is.
var conditional = []struct{ name, method, path, body string }{
	{"title", "PATCH", "/threads/T", `{"title":"a title"}`},
	{"hide", "PATCH", "/threads/T", `{"hidden":true}`},
	{"mark", "POST", "/threads/T/checkpoints", `{"label":"here"}`},
	{"mark with a state", "POST", "/threads/T/checkpoints", `{"state":{"n":1}}`},
	{"fork", "POST", "/threads/T/fork", `{}`},
	{"fork of a message", "POST", "/threads/T/fork", `{"messageId":"u1"}`},
	{"preview of a fork", "POST", "/threads/T/fork", `{"preview":true}`},
	{"rewind", "POST", "/threads/T/rewind", `{"messageId":"u1"}`},
	{"preview of a rewind", "POST", "/threads/T/rewind", `{"messageId":"u1","preview":true}`},
	{"prune", "POST", "/threads/T/prune", `{"keep":1}`},
	{"prune that counts", "POST", "/threads/T/prune", `{"keep":1,"dryRun":true}`},
	{"delete", "DELETE", "/threads/T", ""},
	{"title through CopilotKit", "PATCH", "/copilotkit/threads/T", `{"name":"a title"}`},
	{"hide through CopilotKit", "POST", "/copilotkit/threads/T/archive", `{}`},
	{"delete through CopilotKit", "DELETE", "/copilotkit/threads/T", `{}`},
}

// etags is a server whose threads change as the test says.
type etags struct {
	*testing.T
	db  store.Store
	s   *server.Server
	url string
}

func startETags(t *testing.T) *etags {
	db := memstore.New()
	c := config(t)
	c.ArchiveAfter = time.Hour // unseen does what an archive does, when the test wants it
	c.OpenStore = func() (store.Store, error) { return db, nil }
	s := must(server.New(c))(t)
	if err := s.StartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)
	return &etags{t, db, s, web.URL}
}

// ask sends a request, and returns the status and the body of the answer.
func (e *etags) ask(method, path, body, etag string) (int, string, http.Header) {
	e.Helper()
	req := must(http.NewRequestWithContext(e.Context(), method, e.url+path, strings.NewReader(body)))(e.T)
	req.Header.Set("Content-Type", "application/json")
	if etag != "" {
		req.Header.Set("If-Match", `"`+etag+`"`)
	}
	res := must(http.DefaultClient.Do(req))(e.T)
	defer res.Body.Close()
	return res.StatusCode, string(must(io.ReadAll(res.Body))(e.T)), res.Header
}

// thread makes a thread, and returns the ETag that clients are told.
func (e *etags) thread(id string) string {
	e.Helper()
	for _, n := range []string{"1", "2"} {
		post := `{"threadId":"` + id + `","runId":"r` + n + `","messages":[{"id":"u` + n +
			`","role":"user","content":"hi"}]}`
		if code, body, _ := e.ask("POST", "/runs", post, ""); code != http.StatusOK ||
			!strings.Contains(body, "RUN_FINISHED") {
			e.Fatalf("%d %s", code, body)
		}
	}
	return e.read(id)
}

// read returns the ETag that clients are told.
func (e *etags) read(id string) string {
	e.Helper()
	_, body, header := e.ask("GET", "/threads/"+id, "", "")
	var info threads.Info
	if err := json.Unmarshal([]byte(body), &info); err != nil || header.Get("ETag") != `"`+info.ETag+`"` {
		e.Fatalf("%s %s %v", header.Get("ETag"), body, err)
	}
	return info.ETag
}

// unseen changes a thread as an archive of its log does.
func (e *etags) unseen(id string) {
	e.Helper()
	head := must(e.db.Head(e.Context(), store.ThreadKey{Tenant: server.LocalPrincipal().Tenant, Thread: id}))(e.T)
	err := e.db.Commit(e.Context(), &store.Commit{
		Key: head.Key, ID: thread.UnseenCommit(head.ETag, "unseen"), Expect: head.Position(), User: head.User,
		Fence: head.Fence, UpdatedAt: head.UpdatedAt,
	})
	if err != nil {
		e.Fatal(err)
	}
}

// TestConditions: on each route that takes If-Match, the ETag from before the log was archived is that of
// the thread, and that from before somebody has changed it is not. No answer tells the ETag of the archive.
func TestConditions(t *testing.T) {
	e := startETags(t)
	for _, c := range conditional {
		t.Run(c.name, func(t *testing.T) {
			e := &etags{t, e.db, e.s, e.url}
			id := strings.ReplaceAll(c.name, " ", "-")
			path := strings.Replace(c.path, "T", id, 1)
			old := e.thread(id)
			if code, body, _ := e.ask("PATCH", "/threads/"+id, `{"title":"another"}`, old); code != http.StatusOK {
				t.Fatalf("%d %s", code, body)
			}
			e.unseen(id)
			if code, body, _ := e.ask(c.method, path, c.body, old); code != http.StatusConflict ||
				!strings.Contains(body, "checkpoint_conflict") || strings.Contains(body, "~") {
				t.Errorf("after a change: %d %s", code, body)
			}
			etag := e.read(id)
			e.unseen(id)
			if now := e.read(id); now != etag {
				t.Errorf("the ETag was %s, and is %s", etag, now)
			}
			code, body, header := e.ask(c.method, path, c.body, etag)
			if code < 200 || code >= 300 || strings.Contains(body, "~") || strings.Contains(header.Get("ETag"), "~") {
				t.Errorf("after an archive: %d %q %s", code, header.Get("ETag"), body)
			}
		})
	}
}

// TestToldETags: what clients read of an archived thread has no other ETag than the one that If-Match takes.
func TestToldETags(t *testing.T) {
	e := startETags(t)
	etag := e.thread("t")
	e.unseen("t")
	for path, tells := range map[string]bool{
		"/threads": true, "/threads/t": true, "/threads/t/export": true, "/threads/t/checkpoints": true,
		"/threads/t/runs": false, "/threads/t/messages": false, "/threads/t/state": false, "/threads/t/children": false,
		"/threads/t/runs/r2/events": false, "/copilotkit/threads": false,
		"/copilotkit/threads/t/events": false, "/copilotkit/threads/t/state": false,
	} {
		code, body, _ := e.ask("GET", path, "", "")
		if code != http.StatusOK || strings.Contains(body, "~") || strings.Contains(body, etag) != tells {
			t.Errorf("GET %s tells the ETag %s: %d %.3000s", path, etag, code, body)
		}
	}
	if info := must(e.s.Thread(t.Context(), server.LocalPrincipal(), "t"))(t); info.ETag != etag {
		t.Errorf("a program is told %s", info.ETag)
	}
}
