// Package credential gets what a tool needs to be let in elsewhere, at the moment of the
// call: keys and tokens that are in no configuration, no state, no log and no stream. A user
// who has to log in first is asked to, and the call goes on.
package credential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/secret"
)

// Request says what a credential is for.
type Request struct {
	// Principal is on whose behalf the call is made; zero outside a call.
	Principal holdfast.Principal
	// Server is the name of the server or service that gets the credential.
	Server string
	// Tool is the name of the tool; empty outside a call.
	Tool string
	// Scopes are what it must allow, as the service names that.
	Scopes []string
}

// Source has credentials. It is asked at each call, from many goroutines, so it must be
// safe for that; one that gets them from elsewhere keeps what is still valid. An error that
// wraps a [*LoginRequired] asks the user to log in; the text of any other may be shown to
// the model.
type Source interface {
	// Credential returns what lets the call in.
	Credential(ctx context.Context, r Request) (secret.Text, error)
}

// SourceFunc is a function as a Source.
type SourceFunc func(ctx context.Context, r Request) (secret.Text, error)

// Credential implements [Source].
func (f SourceFunc) Credential(ctx context.Context, r Request) (secret.Text, error) { return f(ctx, r) }

// Env returns a Source with the value of an environment variable, for all users.
func Env(name string) Source {
	return SourceFunc(func(context.Context, Request) (secret.Text, error) {
		if value := strings.TrimSpace(os.Getenv(name)); value != "" {
			return secret.New(value), nil
		}
		return secret.Text{}, fmt.Errorf("the environment variable %s is not set", name)
	})
}

// maxFile bounds a file with a credential, in bytes.
const maxFile = 64 << 10

// File returns a Source with the content of a file, without spaces around it, for all users.
// The file is read at each call, so it may be replaced at any time.
func File(path string) Source {
	return SourceFunc(func(context.Context, Request) (secret.Text, error) {
		f, err := os.Open(path)
		if err != nil {
			return secret.Text{}, unreadable(err)
		}
		defer f.Close()
		b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
		switch value := strings.TrimSpace(string(b)); {
		case err != nil:
			return secret.Text{}, unreadable(err)
		case len(b) > maxFile:
			return secret.Text{}, fmt.Errorf("the file with the credential has more than %d bytes: it is none", maxFile)
		case value == "":
			return secret.Text{}, errors.New("the file with the credential is empty")
		default:
			return secret.New(value), nil
		}
	})
}

// unreadable says why a file cannot be read without its path, which is nobody's business who
// reads the call's result.
func unreadable(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("the file with the credential cannot be read: %w", err)
}

// ReasonLogin is the reason of the question that asks a user to log in. Its metadata has
// "url", where the user does so, and "server". With the answer {"continue": true} the call
// is made again, and the source is asked again: who has still not logged in is asked once
// more. With false the model is told that the user has declined. The tool sees no answer.
const ReasonLogin = "holdfast:login_required"

// schema is that of the answer.
const schema = `{"type":"object","required":["continue"],"properties":{"continue":{"type":"boolean",` +
	`"description":"true after the login; false gives the call up"}}}`

// LoginRequired is the error of a [Source] whose user has to log in. A tool passes it on,
// however wrapped: to the server it is a question to the user, like any
// [*holdfast.Interrupt].
type LoginRequired struct {
	// URL is where the user logs in.
	URL string
	// Message is what the user reads; by default it names the server.
	Message string
	// Server is the name of the server or service; [Transport] sets it.
	Server string
}

// Error says that a login is needed, without the URL, which may have a secret.
func (l *LoginRequired) Error() string {
	if l.Server == "" {
		return "a login is needed"
	}
	return "a login to " + l.Server + " is needed"
}

// Unwrap returns the question to the user.
func (l *LoginRequired) Unwrap() error {
	message := l.Message
	if message == "" {
		message = "Please log in"
		if l.Server != "" {
			message += " to " + l.Server
		}
		message += ", then go on here."
	}
	metadata := map[string]string{"url": l.URL}
	if l.Server != "" {
		metadata["server"] = l.Server
	}
	data, err := json.Marshal(metadata)
	if err != nil {
		return errors.New("the login's address cannot be shown") // strings can be encoded
	}
	return &holdfast.Interrupt{
		Reason:         ReasonLogin,
		Message:        message,
		ResponseSchema: json.RawMessage(schema),
		Metadata:       data,
	}
}
