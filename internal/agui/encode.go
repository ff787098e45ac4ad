package agui

// Encoding events by the table.

import (
	"encoding/json"
	"reflect"
	"strconv"
)

// Append appends the event as strict AG-UI 1.0 JSON on one line; "type" is its first member.
func Append(dst []byte, ev Event) []byte {
	if e, ok := ev.(MessagesSnapshot); ok {
		return appendMessages(dst, &e)
	}
	k := kindOf(ev)
	v := reflect.ValueOf(ev)
	o := event(dst, k.Type)
	o.members(v, k.members)
	o.members(v.Field(0), baseMembers)
	return o.end()
}

// AppendDelta is Append for a piece of a text that has nothing else to say, as most events
// are. A piece that is none of a text is written as one of a call's arguments.
func AppendDelta(dst []byte, t Type, id, delta string) []byte {
	k := byType[t]
	if k == nil || k.phase != continues {
		k = byType[TypeToolCallArgs]
	}
	dst = appendString(append(dst, k.head...), id)
	dst = appendString(append(dst, `,"delta":`...), delta)
	return append(dst, '}')
}

func event(dst []byte, t Type) object {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, t...)
	dst = append(dst, '"')
	return object{b: dst}
}

func (o *object) members(v reflect.Value, list []member) {
	for i := range list {
		m := &list[i]
		switch {
		case m.constant != "":
			o.str(m.name, m.constant)
		case m.of == "" || m.of == v.Field(0).String():
			o.member(v.Field(m.at), m)
		}
	}
}

func (o *object) member(v reflect.Value, m *member) {
	if m.optional && (v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0) {
		return
	}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if m.json {
		o.json(m, v.Bytes())
		return
	}
	switch v.Kind() {
	case reflect.String:
		o.str(m.name, v.String())
	case reflect.Int64:
		n := v.Int()
		o.int(m.name, &n)
	case reflect.Bool:
		o.key(m.name)
		o.b = strconv.AppendBool(o.b, v.Bool())
	case reflect.Struct:
		o.key(m.name)
		o.value(v, m)
	case reflect.Slice:
		o.key(m.name)
		o.b = append(o.b, '[')
		for i := range v.Len() {
			if i > 0 {
				o.b = append(o.b, ',')
			}
			o.value(v.Index(i), m)
		}
		o.b = append(o.b, ']')
	}
}

// json writes a member that has JSON text in it.
func (o *object) json(m *member, v json.RawMessage) {
	switch {
	case m.is == nil && m.optional:
		o.raw(m.name, v)
	case m.is == nil:
		o.always(m.name, v)
	case m.optional:
		o.obj(m.name, v)
	default:
		o.kind(m.name, v, m.is)
	}
}

// value writes an element of a list, or a struct.
func (o *object) value(v reflect.Value, m *member) {
	switch v.Kind() {
	case reflect.String:
		o.b = appendString(o.b, v.String())
	case reflect.Slice:
		o.b = append(o.b, oneLine(v.Bytes())...)
	case reflect.Struct:
		inner := begin(o.b)
		inner.members(v, m.elements)
		o.b = inner.end()
	}
}
