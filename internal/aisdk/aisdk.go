// Package aisdk is the protocol of the Vercel AI SDK: what its clients post, the UI message
// stream that they read, and their form of a history. It turns all of it into the words of
// AG-UI and back, so that a thread is the same whichever client shows it. It is pure: no I/O, no
// clock, no goroutines. If the AI SDK changes a name, only this package changes.
package aisdk

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

// Version is the major version of the AI SDK that a client has.
type Version int

// The versions whose streams differ.
const (
	// V5 knows no approvals, and neither it nor V6 can take back what it shows.
	V5 Version = 5
	V6 Version = 6
	V7 Version = 7
)

// Header is the header that names the stream's protocol, and HeaderValue its version.
const (
	Header      = "X-Vercel-AI-UI-Message-Stream"
	HeaderValue = "v1"
)

// VersionOf returns the version that a client names; false if its streams are not known here.
func VersionOf(name string) (Version, bool) {
	switch name {
	case "", "7":
		return V7, true
	case "6":
		return V6, true
	case "5":
		return V5, true
	}
	return 0, false
}

// answerPrefix begins the id of an answer.
const answerPrefix = "answer-"

// answerID returns the id of the UI message that answers a user's message. An answer is several
// messages of a thread, which come and go while it is written: what it answers stays.
func answerID(user string) string { return answerPrefix + user }

// hint says what a body has.
const hint = `Send what DefaultChatTransport sends: {"id", "messages", "trigger", "messageId"}; "message" may have ` +
	`the last message instead of all.`

// invalid says what is wrong with a body, and where.
func invalid(field, message string) *holdfast.Error {
	e := holdfast.Errorf(codes.InvalidInput, "%s", message).WithHint("%s", hint)
	if field != "" {
		e = e.With("field", field)
	}
	return e
}

// quoted returns a text as JSON.
func quoted(s string) json.RawMessage { return encoded(s) }

// encoded returns a value as JSON. Nothing here can fail to be written.
func encoded(v any) json.RawMessage {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("aisdk: encode %T: %v", v, err))
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
