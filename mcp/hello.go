package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast/mcp/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// How a connection begins. The SDK asks a server with server/discover, which the newer
// revisions know, and takes any failure for a server that knows only the older ones. But a
// gateway's 503 or a broken connection says nothing about the server, and an old server on
// standard input may never answer what it does not know. So the question is watched here.

// The methods of the beginning.
const (
	methodDiscover   = "server/discover"
	methodInitialize = "initialize"
	methodListen     = "subscriptions/listen"
)

// probeTimeout is how long a server that is a process may take to answer server/discover
// before it is asked in the older way too. It has to start first.
const probeTimeout = 5 * time.Second

// stateless is the first revision without sessions.
const stateless = "2026-07-28"

// era is what is known of the revisions that a server speaks, from its connections so far.
type era struct {
	// modern: it has spoken a newer revision; older counts how often since then it did not.
	modern bool
	older  int
	// legacy: it does not answer server/discover, so it is not asked again.
	legacy bool
	// patient: it took long to answer, so the answer is waited for.
	patient bool
}

// maxOlder is how often a server may not know the newer revision that it spoke before, until
// it is taken for one that was replaced by an older one.
const maxOlder = 3

// hello is the beginning of a connection.
type hello struct {
	era    era
	events *events
	log    *slog.Logger
	// put hands a message to the connection's reader.
	put func(jsonrpc.Message) bool
	// elicits: servers of the older revisions may ask people too.
	elicits bool
	// apps: the interfaces of tools are shown.
	apps bool
	// probe is how long to wait for the answer to server/discover; 0 means as long as for
	// the whole beginning.
	probe time.Duration

	mu       sync.Mutex
	discover jsonrpc.ID
	listen   jsonrpc.ID
	timer    *time.Timer
	silent   bool  // server/discover was not answered in time
	answered bool  // server/discover was answered, in whichever way
	failed   error // how it was, if that says nothing about the server
}

// learn notes what the connection has shown of the server; version is empty if it failed.
func (h *hello) learn(e *era, version string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case version >= stateless:
		*e = era{modern: true, patient: e.patient}
	case version != "":
		*e = era{legacy: h.silent || e.legacy}
	case errors.Is(err, errOlder):
		if e.older++; e.older >= maxOlder {
			*e = era{}
		}
	case h.probe > 0 && !e.modern:
		// It may have died of the question. Try the other way next.
		e.legacy = !e.legacy && !h.answered
	}
}

// sending notes a request of the beginning.
func (h *hello) sending(r *jsonrpc.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.Method == methodListen {
		h.listen = r.ID
		return
	}
	h.discover, h.failed = r.ID, errUnanswered
	if h.probe > 0 && h.timer == nil {
		h.timer = time.AfterFunc(h.probe, func() { h.giveUp(r.ID) })
	}
}

// giveUp answers server/discover in the place of a server that does not.
func (h *hello) giveUp(id jsonrpc.ID) {
	h.mu.Lock()
	late := !h.answered
	if late {
		h.silent, h.failed = true, nil
	}
	h.mu.Unlock()
	if late {
		none := &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "not answered in time"}
		h.put(&jsonrpc.Response{ID: id, Error: none})
	}
}

// received looks at the answers to the requests of the beginning.
func (h *hello) received(m *jsonrpc.Response) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !m.ID.IsValid(): // nor are the ids that were not given yet
	case m.ID == h.listen:
		h.listen = jsonrpc.ID{}
		if m.Error != nil && certainlyNot(m.Error) {
			h.log.Info("an MCP server does not tell when its list of tools changes", "error", m.Error)
			h.events.follow()
			return
		}
		err := m.Error
		if err == nil {
			err = errEnd
		}
		h.events.replace(fmt.Errorf("the server's stream of changes has ended: %w", err), false)
	case m.ID == h.discover && !h.silent:
		h.answered, h.failed = true, nil
		if m.Error != nil && !unknownMethod(m.Error) {
			h.failed = m.Error
		}
	case m.ID == h.discover && m.Error == nil:
		// It was only slow to start. The next connection waits for it.
		h.answered = true
		h.events.replace(errSlow, true)
	}
}

// errUnanswered is the error of server/discover until there is an answer.
var errUnanswered = errors.New("the server has not answered")

// errEnd is the error of a stream that was ended in good order, errSlow that of a server
// that answered server/discover after it was given up.
var (
	errEnd  = errors.New("end of the stream")
	errSlow = errors.New("the server speaks a newer revision than it was asked for")
)

// unknownMethod reports whether the answer to server/discover is that of a server which
// does not know it.
func unknownMethod(err error) bool {
	var status *wire.StatusError
	var rpc *jsonrpc.Error
	switch {
	case errors.As(err, &status):
		switch status.Status {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusTooManyRequests:
			return false
		case http.StatusNotFound: // perhaps of a gateway that does not find the server
			return status.RPC != nil
		}
		return status.Refused() && status.Status >= 400
	case errors.As(err, &rpc):
		return true
	}
	return false
}

// mayInitialize returns an error if the older way must not be tried.
func (h *hello) mayInitialize() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.era.legacy:
		return nil
	case h.failed != nil:
		return fmt.Errorf("asking for the server's revision failed: %w", h.failed)
	case h.era.modern:
		return errOlder
	}
	return nil
}

// errOlder is the error of a server that spoke a newer revision before.
var errOlder = errors.New("the server does not know the newer revision that it spoke before")

// initialize returns the request of the older way without what only the newer revisions
// offer: a question in the middle of a call, and tasks.
func (h *hello) initialize(r *jsonrpc.Request) *jsonrpc.Request {
	var p map[string]any
	if json.Unmarshal(r.Params, &p) == nil {
		caps := map[string]any{}
		if h.elicits {
			caps["elicitation"] = map[string]any{"form": map[string]any{}, "url": map[string]any{}}
		}
		if h.apps {
			caps["extensions"] = map[string]any{extensionApps: capabilityApps()}
		}
		p["capabilities"] = caps
		if data, err := json.Marshal(p); err == nil {
			without := *r
			without.Params = data
			return &without
		}
	}
	return r
}

// explain returns the reason why a connection was not made.
func (h *hello) explain(err error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed != nil && h.failed != errUnanswered {
		return h.failed // and not what the SDK made of it
	}
	return err
}

// stop ends the watching of the beginning.
func (h *hello) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil {
		h.timer.Stop()
	}
}
