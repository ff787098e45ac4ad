package http

import (
	"net/http"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/http/agentcard"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
	"github.com/holdfast-agents/holdfast/store"
)

// A request's cursors: the one that its client has, and whether the stream is to have them in
// its events too, for clients whose parser drops what is beside an event.

// cursors is what a request says about them.
type cursors struct {
	after  store.Cursor // of the last event that the client has; zero if it has none
	inside bool         // whether the events are to have theirs
}

// readCursors reads them. Last-Event-ID takes precedence over ?after=, because a browser sends
// it when it reconnects to the same URL.
func readCursors(r *http.Request) (cursors, error) {
	var c cursors
	switch value := r.Header.Get(agentcard.CursorsHeader); value {
	case "":
	case agentcard.InMetadata:
		c.inside = true
	default:
		return c, exchange.Invalid(agentcard.CursorsHeader, "The header Holdfast-Cursors has an unknown value.",
			`Send "metadata" to have each event's cursor in its metadata, or leave the header out.`)
	}
	ids := r.Header.Values(agentcard.LastEventHeader)
	if len(ids) == 0 || ids[0] == "" {
		ids = r.URL.Query()["after"]
	}
	var err error
	if c.after, err = store.ParseCursor(strings.Join(ids, ", ")); err != nil {
		return c, holdfast.Errorf(codes.InvalidCursor, "The cursor cannot be read.").
			WithHint(`Send the id of the last event received, like "12-x7k2ab", once; without one, a run is shown ` +
				`from its beginning and a thread as it is.`).
			Wrap(err)
	}
	return c, nil
}
