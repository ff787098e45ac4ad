package mcp

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/mcp/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// What the error of a request says about the call: that it was never started, that it was
// finished, or nothing, in which case the call's effect decides.

// errTimeout is the cause of a call whose time was up.
var errTimeout = errors.New("the time for an answer was up")

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
		-32020, -32021, -32022: // headers that do not match, a capability that is missing, an unknown revision
		return true
	}
	return false
}

// failure returns what the error of a request means for the call.
func (t *Tool) failure(ctx context.Context, r *wire.Request, err error) error {
	server := t.server.o.Name
	switch {
	case errors.Is(err, wire.ErrTooLarge):
		return holdfast.Errorf(codeAnswer, "%s was called and has answered, but its answer cannot be used: %s.", t.spec.Name, reason(err)).Wrap(err)
	case certainlyNot(err):
		return holdfast.Errorf(codeRefused, "The MCP server %s has not started the call: %s.", server, reason(err)).Wrap(err)
	case !r.Sent():
		return holdfast.Errorf(codeUnreachable, "The MCP server %s cannot be reached; nothing was sent to it. Try again later.", server).Wrap(err)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	text := fmt.Sprintf("%s was called, and the MCP server %s has not said what came of it: %s.", t.spec.Name, server, reason(err))
	switch t.spec.Effect {
	case holdfast.EffectPure: // nothing is at risk, so it has failed
		return holdfast.Errorf(codeNoAnswer, "%s", text).Wrap(err)
	case holdfast.EffectIdempotent:
		return holdfast.Errorf(codeNoAnswer, "%s It may have taken effect.", text).Wrap(err)
	}
	return holdfast.Errorf(codeUnknown, "%s", text).Wrap(fmt.Errorf("%w: %w", holdfast.ErrOutcomeUnknown, err))
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
	}
	return "the connection broke"
}
