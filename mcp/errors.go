package mcp

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast-agents/holdfast/mcp/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// errTimeout is the cause of a call whose time was up.
var errTimeout = errors.New("the time for an answer was up")

// maxProgress is how often a server may tell of the progress of one request: more than 25
// times a second for an hour.
const maxProgress = 100_000

// errFlood is the error of a call whose server does nothing but tell of its progress.
var errFlood = fmt.Errorf("the server has told %d times of its progress, and given no answer", maxProgress)

// certainlyNot reports whether an error is the server's word that it has not started a
// request.
func certainlyNot(err error) bool {
	if status := (*wire.StatusError)(nil); errors.As(err, &status) {
		return status.Refused()
	}
	var rpc *jsonrpc.Error
	if !errors.As(err, &rpc) {
		return false
	}
	switch rpc.Code {
	case jsonrpc.CodeParseError, jsonrpc.CodeInvalidRequest, jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidParams,
		// wrong headers, a missing capability, an unknown revision, a page that has to be opened first
		-32020, -32021, -32022, -32042:
		return true
	}
	return false
}

// hintOf says what an operator can do about an error; "" if that is not known.
func hintOf(err error) string {
	var status *wire.StatusError
	if !errors.As(err, &status) {
		return ""
	}
	switch {
	case status.Status == http.StatusUnauthorized:
		return "it wants a credential, or does not accept the one that it gets: set headers or, in the agents file, " +
			"credential; in Go, CallHeaders where each user has one"
	case status.Status == http.StatusForbidden:
		return "the credential does not allow this, or the server does not accept requests from here"
	case status.Status == http.StatusNotFound:
		return "url is not that of an MCP endpoint"
	case status.Status == http.StatusProxyAuthRequired:
		return "proxy wants a credential"
	case status.Status < 400:
		return "redirects are not followed: set url to where it leads"
	}
	return ""
}

// reason returns what of an error may be shown: what the server has said, or what happened
// to the connection in general terms.
func reason(err error) string {
	var rpc *jsonrpc.Error
	var status *wire.StatusError
	switch {
	case errors.As(err, &rpc):
		return fmt.Sprintf("%s (code %d)", shorten(rpc.Message, 500), rpc.Code)
	case errors.As(err, &status):
		return status.Error()
	case errors.Is(err, wire.ErrTooLarge):
		return "it is larger than allowed"
	case errors.Is(err, wire.ErrUnreadable):
		return "the answer cannot be read"
	case errors.Is(err, errTimeout):
		return errTimeout.Error()
	case errors.Is(err, errFlood):
		return errFlood.Error()
	}
	return "the connection broke"
}
