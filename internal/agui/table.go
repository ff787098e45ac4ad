package agui

// The table of events: where the 31 types differ. Decoding, encoding and both machines that
// know what may follow what read it, with the tags of the events' members.

import (
	"encoding/json"
	"reflect"
	"strings"
)

// kind is a row of the table.
type kind struct {
	Type
	// zero is an event of the type.
	zero Event
	// lane and phase are what the event says about something that is open for a while; empty
	// if it stands alone.
	lane  lane
	phase phase
	// aside means that it may come between the chunks of an item without ending it.
	aside bool

	// These come from the lane and the struct.
	id      string // the member that names what the event is about
	head    string // the event's text up to the value of that member
	is      reflect.Type
	members []member
}

// lane is the sort of things that events open, continue and close.
type lane string

const (
	laneText      lane = "text"
	laneCall      lane = "call"
	laneReasoning lane = "reasoning" // a message of reasoning
	laneSpan      lane = "span"      // of reasoning
	laneStep      lane = "step"
	laneSubagent  lane = "subagent"
)

// phase is what an event does to the thing that it is about.
type phase uint8

const (
	alone     phase = iota
	opens           // START
	continues       // CONTENT or ARGS
	closes          // END
	chunk           // START, CONTENT and END in one
)

// kinds has the 31 types of AG-UI 1.0.
var kinds = []*kind{
	{Type: TypeRunStarted, zero: RunStarted{}},
	{Type: TypeRunFinished, zero: RunFinished{}},
	{Type: TypeRunError, zero: RunError{}},
	{Type: TypeStepStarted, zero: StepStarted{}, lane: laneStep, phase: opens},
	{Type: TypeStepFinished, zero: StepFinished{}, lane: laneStep, phase: closes},
	{Type: TypeTextMessageStart, zero: TextMessageStart{}, lane: laneText, phase: opens},
	{Type: TypeTextMessageContent, zero: TextMessageContent{}, lane: laneText, phase: continues},
	{Type: TypeTextMessageEnd, zero: TextMessageEnd{}, lane: laneText, phase: closes},
	{Type: TypeTextMessageChunk, zero: TextMessageChunk{}, lane: laneText, phase: chunk},
	{Type: TypeToolCallStart, zero: ToolCallStart{}, lane: laneCall, phase: opens},
	{Type: TypeToolCallArgs, zero: ToolCallArgs{}, lane: laneCall, phase: continues},
	{Type: TypeToolCallEnd, zero: ToolCallEnd{}, lane: laneCall, phase: closes},
	{Type: TypeToolCallChunk, zero: ToolCallChunk{}, lane: laneCall, phase: chunk},
	{Type: TypeToolCallResult, zero: ToolCallResult{}},
	{Type: TypeStateSnapshot, zero: StateSnapshot{}},
	{Type: TypeStateDelta, zero: StateDelta{}},
	{Type: TypeMessagesSnapshot, zero: MessagesSnapshot{}},
	{Type: TypeActivitySnapshot, zero: ActivitySnapshot{}, aside: true},
	{Type: TypeActivityDelta, zero: ActivityDelta{}, aside: true},
	{Type: TypeReasoningStart, zero: ReasoningStart{}, lane: laneSpan, phase: opens},
	{Type: TypeReasoningEnd, zero: ReasoningEnd{}, lane: laneSpan, phase: closes},
	{Type: TypeReasoningMessageStart, zero: ReasoningMessageStart{}, lane: laneReasoning, phase: opens},
	{Type: TypeReasoningMessageContent, zero: ReasoningMessageContent{}, lane: laneReasoning, phase: continues},
	{Type: TypeReasoningMessageEnd, zero: ReasoningMessageEnd{}, lane: laneReasoning, phase: closes},
	{Type: TypeReasoningMessageChunk, zero: ReasoningMessageChunk{}, lane: laneReasoning, phase: chunk},
	{Type: TypeReasoningEncryptedValue, zero: ReasoningEncryptedValue{}, aside: true},
	{
		Type:  TypeSubagentStarted,
		zero:  SubagentStarted{},
		lane:  laneSubagent,
		phase: opens,
		aside: true,
	},
	{Type: TypeSubagentFinished, zero: SubagentFinished{}, lane: laneSubagent, phase: closes},
	{Type: TypeSubagentError, zero: SubagentError{}, lane: laneSubagent, phase: closes},
	{Type: TypeRaw, zero: Raw{}, aside: true},
	{Type: TypeCustom, zero: Custom{}},
}

// references are events as a log keeps them. They are never decoded.
var references = []*kind{
	{Type: TypeMessagesSnapshot, zero: MessagesRef{}},
	{Type: TypeStateSnapshot, zero: StateRef{}},
	{Type: TypeStateDelta, zero: StateDeltaRef{}},
	{Type: TypeToolCallResult, zero: ToolCallResultRef{}},
	{Type: TypeActivitySnapshot, zero: ActivitySnapshotRef{}, aside: true},
}

// idMembers are the members that name what events of a lane are about.
var idMembers = map[lane]string{
	laneText:      "messageId",
	laneCall:      "toolCallId",
	laneReasoning: "messageId",
	laneSpan:      "messageId",
	laneStep:      "stepName",
	laneSubagent:  "subagentRunId",
}

// byType finds the rows of what can be decoded, byStruct those of all events.
var byType, byStruct = indexed()

// Known reports whether AG-UI has events of the type.
func (t Type) Known() bool { return byType[t] != nil }

// baseMembers are the ones that all events have. They come last.
var baseMembers = membersOf(reflect.TypeFor[Base]())

func indexed() (map[Type]*kind, map[reflect.Type]*kind) {
	types, structs := map[Type]*kind{}, map[reflect.Type]*kind{}
	for _, k := range kinds {
		types[k.Type] = k
	}
	for _, k := range append(references, kinds...) {
		k.id = idMembers[k.lane]
		k.head = `{"type":"` + string(k.Type) + `","` + k.id + `":`
		k.is = reflect.TypeOf(k.zero)
		k.members = membersOf(k.is)
		structs[k.is] = k
	}
	return types, structs
}

func kindOf(ev Event) *kind { return byStruct[reflect.TypeOf(ev)] }

// EventType returns the type of an event.
func EventType(ev Event) Type { return kindOf(ev).Type }

// IsDelta reports whether events of the type are pieces of a text.
func (t Type) IsDelta() bool {
	k := byType[t]
	return k != nil && k.phase == continues
}

// of returns the row of the lane's events that do that.
func (l lane) of(p phase) *kind {
	for _, k := range kinds {
		if k.lane == l && k.phase == p {
			return k
		}
	}
	return nil
}

// text returns a member of an event that is text; empty if it has none of the name.
func (k *kind) text(ev Event, name string) string {
	for i := range k.members {
		if m := &k.members[i]; m.name == name && m.constant == "" {
			return reflect.ValueOf(ev).Field(m.at).String()
		}
	}
	return ""
}

// made returns an event whose texts are those that get returns for the names of its members.
func (k *kind) made(get func(name string) string) Event {
	v := reflect.New(k.is).Elem()
	for i := range k.members {
		if m := &k.members[i]; v.Field(m.at).Kind() == reflect.String {
			v.Field(m.at).SetString(get(m.name))
		}
	}
	return v.Interface().(Event)
}

// member is how a member of an event, or of a part of it, is written. Its JSON tag has the
// name, and omitempty if it may be absent; further tags say what the JSON in it must be, or
// what the struct's first member must be for it to be written.
type member struct {
	name     string
	at       int // of the struct's fields
	optional bool
	json     bool  // its value is JSON text
	is       *form // nil if any JSON may be in it
	of       string
	constant string
	elements []member // of a struct, or of the structs in a list
}

// form is what the JSON in a member must begin with, and what is written instead of anything
// else: clients would fail the whole run over that.
type form struct{ first, otherwise string }

var forms = map[string]*form{
	"object":       {"{", "{}"},
	"list":         {"[", "[]"},
	"text":         {"\"", `""`},
	"text or list": {"\"[", `""`},
}

func membersOf(t reflect.Type) (list []member) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		m := member{
			name:     name,
			at:       i,
			optional: option == "omitempty",
			json:     f.Type == reflect.TypeFor[json.RawMessage](),
			is:       forms[f.Tag.Get("is")],
			of:       f.Tag.Get("of"),
		}
		if constant, ok := f.Tag.Lookup("always"); ok {
			m.name, m.constant, _ = strings.Cut(constant, "=")
		}
		if m.name == "" || m.name == "-" {
			continue
		}
		if inner := f.Type; inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			if inner.Elem().Kind() == reflect.Struct {
				m.elements = membersOf(inner.Elem())
			}
		}
		list = append(list, m)
	}
	return list
}
