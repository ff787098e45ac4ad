package http

import (
	"context"
	"io"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/threads"
)

// Transfer brings threads out of the server and into it.
type Transfer interface {
	// Export returns a function that writes a thread as a document.
	Export(ctx context.Context, who holdfast.Principal, thread string) (func(io.Writer) error, error)
	// Import makes a thread out of a document. If thread is empty it has the id that the
	// document says or, if that is taken, a new one.
	Import(ctx context.Context, who holdfast.Principal, thread string, document []byte) (*threads.Info, error)
}
