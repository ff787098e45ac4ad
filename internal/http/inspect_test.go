package http

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/store"
	"github.com/holdfast-agents/holdfast/threads"
)

// insider is the part of the fake engine that shows what is inside threads. It records what
// it was last asked for.
type insider struct {
	f     *fake
	asked string
	page  *agui.Page
}

func (i *insider) ask(what string, args ...any) error {
	i.asked = what + fmt.Sprintf("%+v", args)
	return i.f.err
}

func (i *insider) Log(
	_ context.Context, _ holdfast.Principal, thread, run string, after store.Cursor, limit int,
) (*agui.Page, error) {
	page := i.page
	if page == nil {
		page = &agui.Page{
			Frames: pageOf([]agui.Frame{{ID: "1-x", Data: []byte(`{"type":"RUN_STARTED"}`)}}, nil),
			Next:   "1-x",
		}
	}
	return page, i.ask("log", thread, run, after, limit)
}

func (i *insider) Questions(
	_ context.Context, _ holdfast.Principal, before time.Time, limit int,
) (*threads.QuestionList, error) {
	at := time.Unix(0, 1).UTC()
	return &threads.QuestionList{Questions: []threads.Question{
		{
			Thread: threads.QuestionThread{ID: "t", Title: "a title", Agent: "a", Hidden: true},
			Run:    "r",
			Interrupt: threads.Interrupt{
				ID:             "i",
				Reason:         "r",
				Message:        "m",
				ToolCallID:     "c",
				ResponseSchema: json.RawMessage(`{}`),
				ExpiresAt:      "2026-01-31T12:00:00Z",
				Metadata:       json.RawMessage(`{}`),
			},
			AskedAt: at,
		},
	}, Next: at}, i.ask("questions", before.Unix(), limit)
}

func (i *insider) Work(_ context.Context, _ holdfast.Principal, thread string) (*threads.Work, error) {
	at := time.Unix(0, 1).UTC()
	return &threads.Work{Run: "r", Status: threads.StatusRunning, Process: "p", Epoch: 1, Calls: []threads.WorkCall{
		{
			ID:        "c",
			Tool:      "f",
			State:     threads.CallRecorded,
			Effect:    "once",
			Key:       "k",
			Attempts:  2,
			StartedAt: at,
			Interrupt: "i",
			Message:   "m",
			Result:    json.RawMessage(`"x"`),
			Failed:    true,
			EndedAt:   at,
		},
	}}, i.ask("work", thread)
}

func (i *insider) Calls(
	_ context.Context, _ holdfast.Principal, thread, run, before string, limit int,
) (*threads.CallList, error) {
	at := time.Unix(0, 1).UTC()
	return &threads.CallList{Calls: []threads.Call{
		{
			ID:        "c",
			Tool:      "f",
			Message:   "m",
			Result:    "m2",
			Run:       "r",
			Effect:    "once",
			Key:       "k",
			Attempts:  2,
			Failed:    true,
			Code:      "x",
			StartedAt: at,
			EndedAt:   at,
			Process:   "p",
		},
	}, Next: "r"}, i.ask("calls", thread, run, before, limit)
}

// someUsage has every possible member.
func someUsage() []threads.Usage {
	n := int64(3)
	return []threads.Usage{{Usage: holdfast.Usage{
		Provider:        "p",
		Model:           "m",
		InputTokens:     &n,
		OutputTokens:    &n,
		TotalTokens:     &n,
		ReasoningTokens: &n,
		CachedInput:     &n,
		CacheWriteInput: &n,
	}, Cost: "0.5"}}
}

func (i *insider) Usage(_ context.Context, _ holdfast.Principal, thread string) (*threads.ThreadUsage, error) {
	return &threads.ThreadUsage{Runs: 1, Usage: someUsage(), Cost: "0.5", Incomplete: true}, i.ask("usage", thread)
}

// pageOf yields one batch, and then the error.
func pageOf(frames []agui.Frame, err error) func(func([]agui.Frame, error) bool) {
	return func(yield func([]agui.Frame, error) bool) {
		if yield(frames, nil) && err != nil {
			yield(nil, err)
		}
	}
}

// inside serves what the insider shows.
func inside(t *testing.T, i *insider) string {
	t.Helper()
	if i.f == nil {
		i.f = &fake{}
	}
	return serve(t, i.f, func(c *Config) { c.Inspect, c.RunLog = i, i.Log }).URL
}

// TestInspectRoutes: the engine is asked for exactly what the request says.
func TestInspectRoutes(t *testing.T) {
	i := &insider{}
	url := inside(t, i)
	for request, want := range map[string]string{
		"GET /threads/t/runs/r/log":                               "200 log[t r  1000]",
		"GET /threads/a%2Fb/runs/c%2Fd/log?limit=20000&after=7-x": "200 log[a/b c/d 7-x 20000]",
		"GET /questions": fmt.Sprintf("200 questions[%d 50]",
			time.Time{}.Unix()),
		"GET /questions?limit=7&before=1970-01-01T00:01:00Z":   "200 questions[60 7]",
		"GET /threads/a%2Fb/work":                              "200 work[a/b]",
		"GET /threads/a%2Fb/usage":                             "200 usage[a/b]",
		"GET /threads/t/calls":                                 "200 calls[t   50]",
		"GET /threads/t/calls?run=r":                           "200 calls[t r  50]",
		"GET /threads/t/calls?before=r&limit=7":                "200 calls[t  r 7]",
		"GET /threads/t/calls?limit=x":                         "400 ",
		"GET /threads/t/calls?run=" + strings.Repeat("r", 257): "400 ",
		"GET /questions?limit=201":                             "400 ",
		"GET /questions?before=now":                            "400 ",
		"GET /threads/t/runs/r/log?limit=0":                    "400 ",
		"GET /threads/t/runs/r/log?limit=20001":                "400 ",
		"GET /threads/t/runs/r/log?after=x":                    "400 ",
	} {
		i.asked = ""
		method, path, _ := strings.Cut(request, " ")
		path, body, _ := strings.Cut(path, " ")
		res, _ := do(t, method, url+path, body, "Content-Type", "application/json")
		if got := fmt.Sprint(res.StatusCode, " ", i.asked); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
}

// TestLog: a page of a log is one JSON object, whatever its events are made of; one that
// cannot be completed is cut off, so that nobody takes it for whole.
func TestLog(t *testing.T) {
	i := &insider{}
	url := inside(t, i) + "/threads/t/runs/r/log"
	frames := []agui.Frame{
		{ID: `3-a"b`, Data: []byte(`{"type":"RUN_STARTED"}`)},
		{ID: "12-x7k2ab", Pieces: inPieces(`{"type":"MESSAGES_SNAPSHOT",`, `"messages":[]}`)},
	}
	const records = `{"records":[{"cursor":"3-a\"b","number":3,"event":{"type":"RUN_STARTED"}},{"cursor":"12-x7k2ab",` +
		`"number":12,"event":{"type":"MESSAGES_SNAPSHOT","messages":[]}}],`
	for want, page := range map[string]*agui.Page{
		records + `"ended":false,"next":"12-x7k2ab"}` + "\n": {Frames: pageOf(frames, nil), Next: "12-x7k2ab"},
		records + `"ended":true}` + "\n":                     {Frames: pageOf(frames, nil), Ended: true},
		`{"records":[],"ended":false}` + "\n":                {Frames: pageOf(nil, nil)},
	} {
		i.page = page
		res, body := do(t, "GET", url, "")
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != typeJSON || body != want {
			t.Errorf("%d %s, want %s", res.StatusCode, body, want)
		}
	}
	gone := holdfast.Errorf(codes.StoreUnavailable, "The store is gone.")
	for _, page := range []*agui.Page{
		{Frames: pageOf(frames, gone)},
		{Frames: pageOf([]agui.Frame{{ID: "1-x", Pieces: func(yield func([]byte, error) bool) { yield(nil, gone) }}},
			nil)},
	} {
		// A server of its own: the client may ask once more by itself.
		res, err := http.Get(inside(t, &insider{page: page}) + "/threads/t/runs/r/log")
		if err == nil {
			_, err = res.Body.Read(make([]byte, 4096))
			res.Body.Close()
		}
		if err == nil || errors.Is(err, context.Canceled) {
			t.Error("a page that cannot be completed ends like a whole one")
		}
	}
}
