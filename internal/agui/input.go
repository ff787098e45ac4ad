package agui

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/strictjson"
)

// The input of a run: a lenient decoder for what clients post, with errors that tell
// them what to correct, and the canonical form and hash by which a request that is
// sent again is recognized.

// RunAgentInput is what a client posts. State, ForwardedProps and everything else that
// belongs to the application remain JSON text.
type RunAgentInput struct {
	ThreadID string `json:"threadId"`
	// RunID is empty if the client leaves the choice to the server; then the server sets
	// it, and MadeUp.
	RunID           string                 `json:"runId"`
	MadeUp          bool                   `json:"-"`
	ProtocolVersion string                 `json:"protocolVersion"`
	ParentRunID     string                 `json:"parentRunId"`
	State           json.RawMessage        `json:"state"`
	Messages        []Message              `json:"messages"`
	Tools           []Tool                 `json:"tools"`
	Context         []holdfast.ContextItem `json:"context"`
	ForwardedProps  json.RawMessage        `json:"forwardedProps"`
	Resume          []ResumeEntry          `json:"resume"`
	// Traceparent is the W3C trace context of the request; empty if it has none.
	Traceparent string `json:"-"`
	// After is the last record that the client has seen; zero if it does not say.
	After Position `json:"-"`
	// Chat is set by the routes of frontends: unless the request says otherwise, it is
	// decided by the policy chat. An answer that does not fit shows its question again.
	Chat bool `json:"-"`
	// Side is set by the route of suggestions: what it is asked is answered beside the
	// conversation and stored nowhere, or refused.
	Side bool `json:"-"`
}

// Position is a place in a thread's log, as a cursor names it.
type Position struct {
	Number uint64 // of the record, from 1
	Tag    string // of who wrote it
}

// Tool is a tool that the frontend offers.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
}

// maxID bounds the ids that clients choose, in bytes.
const maxID = 256

// DecodeInput reads a client's input. It is lenient where older clients are careless
// (nulls, missing lists, unknown members) and refuses whatever could be misread: double
// names, names in another case, lists with more elements than a request may have, and
// more than [strictjson.MaxDepth] levels. Its errors are of type *holdfast.Error with
// CodeInvalidInput; they name the member and never repeat its content.
func DecodeInput(body []byte) (*RunAgentInput, error) {
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return nil, invalid("", "The body is not a JSON object.", "Send a RunAgentInput: threadId, runId, messages.")
	}
	var refused *strictjson.Error
	counts, err := strictjson.Check(body, inputShape)
	if errors.As(err, &refused) {
		return nil, invalid(refused.Place, refused.Message, refused.Hint)
	}
	in := &RunAgentInput{}
	if err := in.read(body, counts); err != nil {
		return nil, invalid("", "The body cannot be read.", "Send a RunAgentInput: threadId, runId, messages.").
			Wrap(err)
	}
	if err := in.check(); err != nil {
		return in, err
	}
	in.dropMarks()
	return in, nil
}

func invalid(field, message, hint string) *holdfast.Error {
	e := holdfast.Errorf(codes.InvalidInput, "%s", message).WithHint("%s", hint)
	if field != "" {
		e = e.With("field", field)
	}
	return e
}

func (in *RunAgentInput) check() error {
	in.State, in.ForwardedProps = absentIfNull(in.State), absentIfNull(in.ForwardedProps)
	if err := CheckID("threadId", in.ThreadID); err != nil {
		return err
	}
	for _, id := range []struct{ name, value string }{{"runId", in.RunID}, {"parentRunId", in.ParentRunID}} {
		if id.value == "" {
			continue
		}
		if err := CheckID(id.name, id.value); err != nil {
			return err
		}
	}
	if err := checkVersion(in.ProtocolVersion); err != nil {
		return err
	}
	if in.Messages == nil {
		// An empty list has a meaning of its own, so a missing one must not be taken
		// for it.
		return invalid("messages", "messages is missing.",
			`Send the conversation, or "messages": [] to attach or to resume.`)
	}
	seen := make(map[string]bool, len(in.Messages))
	for i := range in.Messages {
		m := &in.Messages[i]
		m.normalize()
		if err := m.Check(i); err != nil {
			return err
		}
		if seen[m.ID] {
			return invalid(at(i, "id"), "Two messages have the same id.", "Give each message an id of its own.")
		}
		seen[m.ID] = true
	}
	return in.checkRest()
}

func at(i int, member string) string { return "messages[" + strconv.Itoa(i) + "]." + member }

// CheckID refuses an id that is empty, too long, or cannot be displayed.
func CheckID(field, id string) error {
	switch {
	case id == "":
		return invalid(field, field+" is missing or empty.", "Send a string, such as a UUID.")
	case len(id) > maxID:
		return invalid(field, fmt.Sprintf("%s is longer than %d bytes.", field, maxID),
			"Send a shorter id, such as a UUID.")
	case strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return invalid(field, field+" holds control characters.", "Send printable characters only.")
	}
	return nil
}

// checkVersion accepts every minor version of the major version that this server
// speaks: newer minor versions must be served (AG-UI spec, versioning).
func checkVersion(v string) error {
	if v == "" {
		return nil
	}
	major, minor, ok := strings.Cut(v, ".")
	if _, err := strconv.ParseUint(minor, 10, 16); !ok || err != nil {
		return invalid("protocolVersion", "protocolVersion is not of the form MAJOR.MINOR.",
			`Send "1.0", or leave it out for the dialect before it.`)
	}
	n, err := strconv.ParseUint(major, 10, 16)
	if err != nil || n > 1 {
		return invalid("protocolVersion", "This major version of AG-UI is not known here.", `This server speaks "1.0".`)
	}
	return nil
}

// Check returns an error if no client may send the message, and brings its parts into their
// current form. i is its place in the list, for the error.
func (m *Message) Check(i int) error {
	if err := CheckID(at(i, "id"), m.ID); err != nil {
		return err
	}
	kind := byte(0)
	if len(m.Content) > 0 {
		kind = m.Content[0]
	}
	ok := false
	switch holdfast.Role(m.Role) {
	case holdfast.RoleSystem, holdfast.RoleDeveloper, holdfast.RoleReasoning:
		ok = kind == '"'
	case holdfast.RoleUser:
		ok = kind == '"' || kind == '['
	case holdfast.RoleTool:
		ok = kind == '"' || kind == '['
		if m.ToolCallID == "" {
			return invalid(at(i, "toolCallId"), "A tool message does not say which call it answers.", "Set toolCallId.")
		}
	case holdfast.RoleAssistant:
		ok = kind == 0 || kind == '"'
	case holdfast.RoleActivity:
		ok = kind == '{' || kind == 0
	default:
		return invalid(at(i, "role"), "A message has an unknown role.",
			"Use user, assistant, tool, system, developer, reasoning or activity.")
	}
	if !ok {
		return invalid(at(i, "content"), "The content of a message has the wrong type for its role.",
			"Send text; users and tools may send a list of parts.")
	}
	if kind == '[' {
		list, err := parts(m.Content)
		if err != nil {
			return invalid(at(i, "content"), "A content part cannot be used.",
				"A text part has text; a media part has a source with type and value.").Wrap(err)
		}
		// The parts are encoded again, because retired and unknown parts and members
		// would come back to clients in snapshots.
		m.Content = appendParts(nil, list)
	}
	for n, c := range m.ToolCalls {
		call := at(i, "toolCalls["+strconv.Itoa(n)+"]")
		if c.ID == "" || c.Function.Name == "" {
			return invalid(call, "A tool call has no id or no name.", "Set id and function.name.")
		}
		if strictjson.Depth(c.Function.Arguments) > strictjson.MaxDepth {
			return invalid(call+".function.arguments",
				fmt.Sprintf("The arguments are nested more than %d deep.", strictjson.MaxDepth),
				"Send arguments that are less deep.")
		}
		if err := checkObject(call+".metadata", c.Metadata); err != nil {
			return err
		}
	}
	return checkObject(at(i, "metadata"), m.Metadata)
}

// checkObject refuses metadata that is not an object: sent back in a snapshot, it
// would fail the client's run.
func checkObject(field string, v json.RawMessage) error {
	if len(v) == 0 || v[0] == '{' {
		return nil
	}
	return invalid(field, field+" is not an object.", "Send an object, or leave it out.")
}

func (in *RunAgentInput) checkRest() error {
	for i := range in.Tools {
		t := &in.Tools[i]
		t.Parameters, t.Metadata = absentIfNull(t.Parameters), absentIfNull(t.Metadata)
		if t.Name == "" {
			return invalid("tools["+strconv.Itoa(i)+"].name", "A tool has no name.", "Set name.")
		}
		if err := checkObject("tools["+strconv.Itoa(i)+"].metadata", t.Metadata); err != nil {
			return err
		}
	}
	for i := range in.Resume {
		r := &in.Resume[i]
		r.Payload, r.Metadata = absentIfNull(r.Payload), absentIfNull(r.Metadata)
		field := "resume[" + strconv.Itoa(i) + "]"
		if r.InterruptID == "" {
			return invalid(field+".interruptId", "A resume entry does not say what it answers.", "Set interruptId.")
		}
		same := func(other ResumeEntry) bool { return other.InterruptID == r.InterruptID }
		if slices.ContainsFunc(in.Resume[:i], same) {
			return invalid(field+".interruptId", "A question is answered twice in resume.",
				"Send one entry for each question.")
		}
		if r.Status != ResumeResolved && r.Status != ResumeCancelled {
			return invalid(field+".status", "A resume entry has an unknown status.", `Use "resolved" or "cancelled".`)
		}
		if err := checkObject(field+".metadata", r.Metadata); err != nil {
			return err
		}
	}
	return nil
}

// AppendJSON appends the input in one canonical form.
func (in *RunAgentInput) AppendJSON(dst []byte) []byte {
	o := begin(dst)
	o.str("threadId", in.ThreadID)
	o.str("runId", in.RunID)
	o.opt("protocolVersion", in.ProtocolVersion)
	o.opt("parentRunId", in.ParentRunID)
	o.raw("state", in.State)
	o.list("messages", len(in.Messages), func(i int, b []byte) []byte { return in.Messages[i].AppendJSON(b) })
	o.list("tools", len(in.Tools), func(i int, b []byte) []byte { return in.Tools[i].appendJSON(b) })
	o.list("context", len(in.Context), func(i int, b []byte) []byte {
		c := begin(b)
		c.str("description", in.Context[i].Description)
		c.str("value", in.Context[i].Value)
		return c.end()
	})
	o.raw("forwardedProps", in.ForwardedProps)
	if len(in.Resume) > 0 {
		o.list("resume", len(in.Resume), func(i int, b []byte) []byte { return in.Resume[i].appendJSON(b) })
	}
	return o.end()
}

func (o *object) list(name string, n int, each func(i int, b []byte) []byte) {
	o.key(name)
	o.b = append(o.b, '[')
	for i := range n {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = each(i, o.b)
	}
	o.b = append(o.b, ']')
}

func (t *Tool) appendJSON(dst []byte) []byte {
	o := begin(dst)
	o.str("name", t.Name)
	o.str("description", t.Description)
	o.raw("parameters", t.Parameters)
	o.obj("metadata", t.Metadata)
	return o.end()
}

// size is about how long the canonical form is: a text of megabytes that grows as it is
// written would take several times its memory.
func (in *RunAgentInput) size() int {
	n := 1024 + len(in.State) + len(in.ForwardedProps)
	for i := range in.Messages {
		n += 256 + len(in.Messages[i].Content)
	}
	return n
}

// Hash returns a hash that recognizes an input that is sent again. It covers this
// package's own encoding, never the client's bytes.
func (in *RunAgentInput) Hash() string {
	sum := sha256.Sum256(in.AppendJSON(make([]byte, 0, in.size())))
	return hex.EncodeToString(sum[:])
}
