package agui

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/strictjson"
)

// everyMember is an input in which each member of it, and of a message, is set.
const everyMember = ` { "threadId" : "t\u00e9" , "runId":"r", "protocolVersion":"1.0","parentRunId":"p",
	"state": {"a":[1,"]}\"",{}]} ,
	"messages":[ {"id":"1","role":"user","content":"a\\","name":"n",
		"toolCalls":[{"id":"c","type":"function","encryptedValue":"e","metadata":{"x":1},
		"function":{"name":"f","arguments":"{\"a\":1}"}}],"toolCallId":"c","error":"e",
		"encryptedValue":"v","activityType":"a","metadata":{"b":[]},
		"subagentRunId":"s"} , {"\u0069d":"2","content":[ {"type":"text","text":"}"} ] , "unknown":[[]]},{ },null],
	"tools":[{"name":"f","description":"d","parameters":{"type":"object"},"metadata":{}}],
	"context":[{"description":"d","value":"v"}],
	"forwardedProps":-1.5e3, "unknown":{"messages":[]},
	"resume":[{"interruptId":"i","status":"resolved","payload":true,"metadata":null}]}
	`

// TestReadIsJSON: what is read is what encoding/json reads, for each member that the
// structs have, whatever its value is.
func TestReadIsJSON(t *testing.T) {
	sameAsJSON(t, []byte(everyMember))
	for _, of := range []struct {
		shape  *strictjson.Shape
		prefix string
		suffix string
		fields reflect.Type
	}{
		{inputShape, `{`, `}`, reflect.TypeFor[RunAgentInput]()},
		{messageShape, `{"messages":[{`, `}]}`, reflect.TypeFor[Message]()},
	} {
		names := 0
		for i := range of.fields.NumField() {
			name := of.fields.Field(i).Tag.Get("json")
			if name == "-" {
				continue
			}
			names++
			if _, ok := of.shape.Members[name]; !ok {
				t.Errorf("%s has a member %q that its shape does not have", of.fields, name)
			}
			if !strings.Contains(everyMember, `"`+name+`"`) {
				t.Errorf("%s has a member %q that is not tested", of.fields, name)
			}
			for _, value := range []string{`null`, `""`, `"a\nb"`, `[]`, `[{}]`, `[null]`, `{}`, ` {"a" : "b"} `, `0`} {
				sameAsJSON(t, []byte(of.prefix+`"`+name+`":`+value+of.suffix))
			}
		}
		if names != len(of.shape.Members) {
			t.Errorf("%s has %d members, its shape %d", of.fields, names, len(of.shape.Members))
		}
	}
}

// FuzzRead: what is read of an accepted body is what encoding/json reads.
func FuzzRead(f *testing.F) {
	f.Add([]byte(everyMember))
	f.Add([]byte(`{"messages":null,"tools":null,"state":null}`))
	f.Fuzz(sameAsJSON)
}

func sameAsJSON(t *testing.T, body []byte) {
	counts, err := strictjson.Check(body, inputShape)
	if err != nil || body[0] == 'n' {
		return
	}
	var read, decoded RunAgentInput
	if err := read.read(body, counts); (err == nil) != (json.Unmarshal(body, &decoded) == nil) {
		t.Fatalf("%s: %v", body, err)
	} else if err == nil && !reflect.DeepEqual(read, decoded) {
		t.Fatalf("%s\n got %+v\nwant %+v", body, read, decoded)
	}
}
