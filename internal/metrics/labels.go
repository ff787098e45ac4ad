package metrics

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/store"
)

// The values of labels: each is one of a closed set, a configured name, or one of a bounded
// number of names that appear in use.

const (
	// other stands for every value that is not in a label's closed set.
	other = "other"
	// frontendTool stands for all frontend tools, since clients choose their names.
	frontendTool = "frontend"
)

// known returns the error codes of package codes. An extension's code is other.
func known() []string {
	return []string{
		codes.AgentNotFound,
		codes.AnswersMissing,
		codes.AuthUnavailable,
		codes.BodyTimeout,
		codes.BudgetExceeded,
		codes.CallAlreadyAnswered,
		codes.CallClosed,
		codes.CallExpired,
		codes.CallPending,
		codes.CheckpointConflict,
		codes.CheckpointInvalid,
		codes.CheckpointStale,
		codes.CheckpointUnreadable,
		codes.CircuitOpen,
		codes.CutOff,
		codes.Forbidden,
		codes.ForbiddenHost,
		codes.ForbiddenOrigin,
		codes.HistoryDiverged,
		codes.HistoryNotKept,
		codes.Internal,
		codes.InterruptAlreadyAnswered,
		codes.InterruptExpired,
		codes.Interrupted,
		codes.InvalidAnswer,
		codes.InvalidCursor,
		codes.InvalidInput,
		codes.LimitExceeded,
		codes.MaxIterations,
		codes.MediaRefused,
		codes.MethodNotAllowed,
		codes.MiddlewareFailed,
		codes.RateLimited,
		codes.SchemaChanged,
		codes.StateConflict,
		codes.StateInvalid,
		codes.StateMigration,
		codes.StateNotListed,
		codes.StateTooNew,
		codes.StateUnreadable,
		codes.StateUnwritable,
		codes.TooManyErrors,
		codes.MidExecution,
		codes.ModelFailed,
		codes.NotAcceptable,
		codes.NotFound,
		codes.NotRecorded,
		codes.NothingToRun,
		codes.OutputCut,
		codes.OutputInvalid,
		codes.PayloadTooLarge,
		codes.RecoveryGaveUp,
		codes.RevisionGone,
		codes.RunIDReused,
		codes.RunInProgress,
		codes.StoreUnavailable,
		codes.StreamCut,
		codes.ThreadExists,
		codes.ThreadTooLarge,
		codes.TooManyBodies,
		codes.TooManyRuns,
		codes.ShuttingDown,
		codes.Starting,
		codes.Unauthenticated,
		codes.UnknownToolCall,
		codes.UnsupportedMediaType,
		codes.VersionTooNew,
		codes.WrongAgent,
	}
}

// The values of limit and scope in holdfast_limit_rejections_total. They are read only.
var (
	limitNames  = []string{"runs", "streams", "threads", "bytes", "streamBytes", "exportBytes"}
	limitScopes = []string{"tenant", "user", "server"}
)

// hookNames are the hooks of a middleware, in the order of the struct's members. They are
// read only.
var hookNames = []string{"run", "before_iteration", "after_iteration", "batch", "model", "tool"}

// errorTypes returns the values of error_type. conflict, fenced and cancelled are not
// the store's fault: a lost race, an owner that was replaced, a client that went away.
func errorTypes() []string {
	return []string{
		"conflict",
		"fenced",
		"cancelled",
		"timeout",
		"unavailable",
		"unreadable",
		"invalid",
		"version_too_new",
		other,
	}
}

// errorType returns the error_type of a commit's error.
func errorType(err error) string {
	var (
		network net.Error
		system  syscall.Errno
		public  *holdfast.Error
	)
	switch {
	case errors.Is(err, store.ErrConflict):
		return "conflict"
	case errors.Is(err, store.ErrFenced):
		return "fenced"
	case errors.Is(err, store.ErrInvalid):
		return "invalid"
	case errors.Is(err, store.ErrVersionTooNew):
		return "version_too_new"
	case errors.Is(err, store.ErrUnreadable):
		return "unreadable"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "timeout"
	case network != nil, errors.As(err, &system), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, net.ErrClosed), errors.Is(err, store.ErrRefused),
		errors.As(err, &public) && public.Code == codes.StoreUnavailable:
		return "unavailable"
	}
	return other
}

// oneOf returns the value if it is in the set.
func oneOf[T ~string](set []T, value T) string {
	if slices.Contains(set, value) {
		return string(value)
	}
	return other
}

// agent and tool return the label value of a configured name.
func (m *Metrics) agent(name string) string { return among(m.configured.Load().agents, name) }

// tool returns the label value of a tool. started means that a call to it has run, so there
// is such a tool, if only in a toolset; any other name may be a model's invention.
func (m *Metrics) tool(name string, started bool) string {
	c := m.configured.Load()
	if l, ok := c.tools[name]; ok {
		return l
	}
	if c.toolsets && started {
		return m.sets.label(name)
	}
	return other
}

func among(labels map[string]string, name string) string {
	if l, ok := labels[name]; ok {
		return l
	}
	return other
}

// label turns a name into a valid label value.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

func statusCode(code int) string {
	if code < 100 || code > 599 {
		return other
	}
	return strconv.Itoa(code)
}

// maxNames bounds how many names middleware may use as label values.
const maxNames = 100

// maxToolNames bounds how many tools of toolsets are counted by name.
const maxToolNames = 1000

// names are what is counted by name although it is not configured: notices, which
// middleware lists or which appeared in use, and tools of toolsets.
type names struct {
	most int // how many

	mu   sync.Mutex
	seen map[string]bool
}

func (n *names) label(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.seen[name] {
		if len(n.seen) >= n.most {
			return other
		}
		n.seen[name] = true
	}
	return label(name)
}
