package middleware_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/internal/memstore"
	"github.com/holdfast-agents/holdfast/internal/testkit/hooktest"
	"github.com/holdfast-agents/holdfast/middleware"
	"github.com/holdfast-agents/holdfast/offline"
	"github.com/holdfast-agents/holdfast/store"
)

// remembering is a model that says what it is shown, and counts its summaries.
func remembering(summaries *atomic.Int32) holdfast.Model {
	return hooktest.Scripted(func(req *holdfast.ModelRequest) []holdfast.Delta {
		text := fmt.Sprintf("shown: %d, %s", len(req.Messages), strings.Join(req.Instructions, " "))
		if req.Messages[0].ID == "summary" {
			text = fmt.Sprintf("summary %d", summaries.Add(1))
		}
		return []holdfast.Delta{{Text: text}, {Finish: holdfast.FinishStop, Usage: hooktest.Usage(1000, 1)}}
	})
}

// TestASummarySurvivesARestart: another process uses the summary that was made once. The
// history has all messages, and the usage includes the summary.
func TestASummarySurvivesARestart(t *testing.T) {
	t.Parallel()
	var summaries atomic.Int32
	agent := holdfast.Agent{Model: remembering(&summaries), Middleware: []holdfast.Middleware{
		middleware.HistoryWindow(middleware.HistoryWindowOptions{MaxMessages: 4, Then: middleware.WindowSummarise,
			SummaryEvery: 4}),
	}}
	c := hooktest.Serve(t, agent, nil)
	for i := range 4 {
		stream := hooktest.Text(c.Run(fmt.Sprint("question ", i)))
		if made := strings.Contains(stream, `"name":"holdfast.history_summarised"`); made != (i == 3) {
			t.Errorf("question %d: %s", i, stream)
		}
		if i == 3 && (!strings.Contains(stream, `"inputTokens":2000`) ||
			!strings.Contains(stream, "shown: 2, Summary of the first 6 messages")) {
			t.Error(stream)
		}
	}
	c.Restart()
	if stream := hooktest.Text(c.Run("and now")); !strings.Contains(stream,
		`shown: 4, Summary of the first 6 messages of this conversation:\nsummary 1`) || summaries.Load() != 1 {
		t.Errorf("%d summaries: %s", summaries.Load(), stream)
	}
	if history := hooktest.Ask(t, c, http.MethodGet, "/threads/t/messages", nil); strings.Count(history,
		`"role":"user"`) != 5 {
		t.Error(history)
	}
}

// TestAWindowTruncates: the model is told, and the history has all messages.
func TestAWindowTruncates(t *testing.T) {
	t.Parallel()
	agent := holdfast.Agent{Model: remembering(&atomic.Int32{}), Middleware: []holdfast.Middleware{
		middleware.HistoryWindow(middleware.HistoryWindowOptions{MaxMessages: 3})}}
	c := hooktest.Serve(t, agent, nil)
	c.Run("one")
	c.Run("two")
	stream := hooktest.Text(c.Run("three"))
	if !strings.Contains(stream, "shown: 2, The conversation before this point is not shown: 3 messages.") {
		t.Error(stream)
	}
	if history := hooktest.Ask(t, c, http.MethodGet, "/threads/t/messages", nil); strings.Count(history,
		`"role":"assistant"`) != 3 {
		t.Error(history)
	}
}

// summariser is an agent that summarises early.
func summariser(summaries *atomic.Int32) holdfast.Agent {
	return holdfast.Agent{Model: remembering(summaries), Middleware: []holdfast.Middleware{
		middleware.HistoryWindow(middleware.HistoryWindowOptions{MaxMessages: 4, Then: middleware.WindowSummarise,
			SummaryEvery: 4}),
	}}
}

// exported returns a thread's document.
func exported(t *testing.T, db store.Store) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := offline.Export(t.Context(), db, store.ThreadKey{Tenant: "default", Thread: "t"}, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// imported returns a server whose store has a thread that was exported.
func imported(t *testing.T, agent holdfast.Agent, document []byte) *agenttest.Harness {
	t.Helper()
	db := memstore.New()
	if _, err := offline.Import(t.Context(), db, store.ThreadKey{}, bytes.NewReader(document)); err != nil {
		t.Fatal(err)
	}
	found, err := offline.Check(t.Context(), db, nil, func(p offline.Problem) { t.Errorf("%+v", p) })
	if err != nil || found.Threads != 1 {
		t.Errorf("%+v, %v", found, err)
	}
	return hooktest.Serve(t, agent, db)
}

const summaryInHistory = `"activityType":"holdfast.summary"`

// TestASummaryTravels: it goes with its messages, into forks and imports, and out of sight
// with a rewind.
func TestASummaryTravels(t *testing.T) {
	t.Parallel()
	var summaries atomic.Int32
	db := memstore.New()
	c := hooktest.Serve(t, summariser(&summaries), db)
	c.Run("question 0")
	early := hooktest.Checkpoint(t, c, "t")
	for i := 1; i < 4; i++ {
		c.Run(fmt.Sprint("question ", i))
	}
	hooktest.Fork(t, c, "t", "forked")
	c.Thread("forked")
	stream := hooktest.Text(c.Run("and now"))
	if history := hooktest.Ask(t, c, http.MethodGet, "/threads/forked/messages", nil); !strings.Contains(history,
		summaryInHistory) || !strings.Contains(stream, `shown: 4, Summary of the first 6 messages`) {
		t.Errorf("the fork: %s\n%s", stream, history)
	}
	elsewhere := imported(t, summariser(&summaries), exported(t, db))
	stream = hooktest.Post(t, elsewhere, "t", "run9", nil)
	if !strings.Contains(stream, `shown: 4, Summary of the first 6 messages`) || summaries.Load() != 1 {
		t.Errorf("the import, after %d summaries: %s", summaries.Load(), stream)
	}
	hooktest.Rewind(t, c, "t", early)
	c.Thread("t")
	stream = hooktest.Text(c.Run("something else"))
	if history := hooktest.Ask(t, c, http.MethodGet, "/threads/t/messages", nil); strings.Contains(history,
		summaryInHistory) || !strings.Contains(stream, "shown: 3, ") {
		t.Errorf("rewound: %s\n%s", stream, history)
	}
}
