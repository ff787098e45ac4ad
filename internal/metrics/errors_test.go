package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/metrics"
	"github.com/holdfast-agents/holdfast/observe"
	"github.com/holdfast-agents/holdfast/store"
)

// named is a tool that does nothing.
func named(name string) holdfast.Tool {
	return holdfast.NewTool(name, name, func(context.Context, struct{}) (string, error) { return "", nil })
}

// TestErrorTypes: a store's errors are distinguished as far as an operator would act
// differently on them.
func TestErrorTypes(t *testing.T) {
	for kind, errs := range map[string][]error{
		"conflict":        {store.ErrConflict},
		"fenced":          {store.ErrFenced},
		"invalid":         {store.ErrInvalid},
		"version_too_new": {store.ErrVersionTooNew},
		"cancelled":       {context.Canceled},
		"timeout": {context.DeadlineExceeded, os.ErrDeadlineExceeded,
			&net.OpError{Op: "read", Err: syscall.ETIMEDOUT}},
		"unavailable": {
			&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, io.EOF, net.ErrClosed,
			&os.PathError{Op: "write", Path: "data/000004.log", Err: syscall.ENOSPC},
			holdfast.Errorf(codes.StoreUnavailable, "away"), fmt.Errorf("%w: full", store.ErrRefused),
		},
		"other": {errors.New("strange")},
	} {
		for _, err := range errs {
			m := metrics.New(nil)
			m.Observer().Committed(holdfast.Iteration{}, &store.Commit{}, 0, fmt.Errorf("commit: %w", err))
			want(t, m, map[string]string{
				fmt.Sprintf(`holdfast_checkpoint_errors_total{error_type=%q}`, kind): "1",
				"holdfast_checkpoint_duration_seconds_count":                         "0",
				"holdfast_commit_duration_seconds_count":                             "0",
			})
		}
	}
}

// TestDurations: a commit is timed, and so is each checkpoint in it.
func TestDurations(t *testing.T) {
	m := metrics.New(nil)
	m.Observer().
		Committed(holdfast.Iteration{},
			&store.Commit{
				Put: []store.Value{{Kind: store.KindPending}, {Kind: store.KindCheckpoint}},
			}, 2*time.Second, nil)
	m.Observer().
		Committed(holdfast.Iteration{}, &store.Commit{Put: []store.Value{{Kind: store.KindPending}}}, time.Second, nil)
	m.Observer().Committed(holdfast.Iteration{}, &store.Commit{Records: [][]byte{nil}}, time.Second, nil)
	want(t, m, map[string]string{
		`holdfast_checkpoint_duration_seconds_count`: "1",
		`holdfast_checkpoint_duration_seconds_sum`:   "2",
		`holdfast_commit_duration_seconds_count`:     "3",
		`holdfast_commit_duration_seconds_sum`:       "4",
	})
}

// TestPendingWrites: a commit's pending writes are counted one by one, and clearing them
// as one operation.
func TestPendingWrites(t *testing.T) {
	m := metrics.New(nil)
	put := []store.Value{
		{Kind: store.KindPending, ID: "1"},
		{Kind: store.KindIntent, ID: "2"},
		{Kind: store.KindPending, ID: "3"},
	}
	cleared := []store.Kind{store.KindPending, store.KindIntent, store.KindPending}
	m.Observer().Committed(holdfast.Iteration{}, &store.Commit{Put: put}, 0, nil)
	m.Observer().Committed(holdfast.Iteration{}, &store.Commit{Put: put}, 0, io.EOF)
	m.Observer().Committed(holdfast.Iteration{}, &store.Commit{Clear: cleared}, 0, nil)
	want(t, m, map[string]string{
		`holdfast_pending_writes_saved_total`:   "2",
		`holdfast_pending_writes_errors_total`:  "2",
		`holdfast_pending_writes_deleted_total`: "1",
	})
}

// TestClosedSets: a value outside its closed set is other, and a provider's nonsense
// does not cause a panic.
func TestClosedSets(t *testing.T) {
	m := metrics.New([]holdfast.Agent{{Name: "a", Tools: []holdfast.Tool{named("look")}}})
	at := holdfast.Iteration{Agent: "b"}
	negative := int64(-1)
	m.Observer().ModelCalled(at, "dreamt", -1, 0, &holdfast.Usage{InputTokens: &negative})
	m.Observer().ModelFailed(at, observe.ModelFailure{Provider: "test", Model: "said by a provider", Kind: "new"})
	m.Observer().FellBack(at, "test/one", "said by a provider")
	m.Observer().ToolCalled(at, "look\xff", "broken", 0)
	m.Observer().RunEnded(at, "vanished", "", 0)
	m.Observer().TakenOver(at, "stolen", "")
	m.RequestDone("/x", "GET", 1000, 0)
	want(t, m, map[string]string{
		`holdfast_model_calls_total{agent="other",result="other"}`:                   "1",
		`holdfast_tool_calls_total{result="other",tool="other"}`:                     "1",
		`holdfast_runs_total{agent="other",outcome="other"}`:                         "1",
		`holdfast_claims_total{result="other"}`:                                      "1",
		`holdfast_model_failures_total{kind="other",model="other",provider="other"}`: "1",
		`holdfast_model_fallbacks_total{agent="other",from="other",to="other"}`:      "1",
		`holdfast_http_requests_total{code="other",method="GET",route="/x"}`:         "1",
		`holdfast_tokens_total{agent="a",kind="input"}`:                              "0",
		`holdfast_time_to_first_delta_seconds_count`:                                 "0",
	})
}

// TestResultsAreKnown: every result that the engine reports is in its closed set.
func TestResultsAreKnown(t *testing.T) {
	m := metrics.New([]holdfast.Agent{{Name: "a", Tools: []holdfast.Tool{named("look")}}})
	at := holdfast.Iteration{Agent: "a"}
	for _, r := range observe.ModelResults() {
		m.Observer().ModelCalled(at, r, 0, 0, nil)
	}
	for _, r := range observe.ToolResults() {
		m.Observer().ToolCalled(at, "look", r, 0)
	}
	for _, r := range observe.TakeoverResults() {
		m.Observer().TakenOver(at, r, "")
	}
	m.Observer().RunEnded(at, observe.OutcomeLeft, "", 0)
	for name, value := range series(t, m) {
		if value != "0" && strings.Contains(name, `="other"`) {
			t.Errorf("a result of the engine is not known here: %s", name)
		}
	}
}

// TestToolsetNames: a tool of a toolset is counted by name once a call to it has run; what a
// model invents is not.
func TestToolsetNames(t *testing.T) {
	m := metrics.New([]holdfast.Agent{{Name: "a", Toolsets: []holdfast.Toolset{nil}}})
	called := m.Observer().ToolCalled
	called(holdfast.Iteration{}, "files_read", observe.ToolSuccess, 0)
	called(holdfast.Iteration{}, "files_read", observe.ToolRefused, 0)
	called(holdfast.Iteration{}, "invented", observe.ToolRefused, 0)
	for i := range 2000 {
		called(holdfast.Iteration{}, fmt.Sprint("many_", i), observe.ToolFailed, 0)
	}
	all := series(t, m)
	tools := 0
	for name := range all {
		if strings.HasPrefix(name, "holdfast_tool_calls_total{") {
			tools++
		}
	}
	if all[`holdfast_tool_calls_total{result="success",tool="files_read"}`] != "1" ||
		all[`holdfast_tool_calls_total{result="refused",tool="other"}`] != "2" || tools > 1010 {
		t.Errorf("%d series: %v", tools, all[`holdfast_tool_calls_total{result="refused",tool="other"}`])
	}
}
