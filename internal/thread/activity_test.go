package thread_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// drawn returns a JSON value.
func drawn(r *rapid.T, depth int) any {
	kinds := 6
	if depth == 0 {
		kinds = 4
	}
	switch rapid.IntRange(0, kinds-1).Draw(r, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(r, "bool")
	case 2:
		return rapid.IntRange(-3, 3).Draw(r, "number")
	case 3:
		return rapid.SampledFrom([]string{"", "a", "~/\"", "<é\u2028", strings.Repeat("long ", 20)}).Draw(r, "text")
	case 4:
		list := []any{}
		for range rapid.IntRange(0, 4).Draw(r, "length") {
			list = append(list, drawn(r, depth-1))
		}
		return list
	}
	return drawnObject(r, depth)
}

func drawnObject(r *rapid.T, depth int) map[string]any {
	object := map[string]any{}
	names := []string{"a", "b", "", "~1/0~", "0", "-", "__proto__"}
	for range rapid.IntRange(0, 4).Draw(r, "members") {
		object[rapid.SampledFrom(names).Draw(r, "name")] = drawn(r, depth-1)
	}
	return object
}

// TestActivityChange: whatever an activity shows, and shows next, the change makes one of the
// other, alone and with others, and is stored and read as it is.
func TestActivityChange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		first := json.RawMessage(thread.MustJSON(drawnObject(r, 3)))
		now, changes := first, []thread.ActivityChange{}
		for range rapid.IntRange(1, 4).Draw(r, "changes") {
			next := json.RawMessage(thread.MustJSON(drawnObject(r, 3)))
			c, is := thread.NewChange("msg_1", now, next)
			if same(now, next) == is {
				r.Fatalf("%s and %s: a change is %t", now, next, is)
			}
			if !is {
				continue
			}
			m, _ := thread.Stored(c.Message("msg_2", "acme.x"))
			read, is := thread.ActivityChangeOf(&m)
			if !is || !reflect.DeepEqual(read, c) {
				r.Fatalf("stored %+v, read %+v, %t", c, read, is)
			}
			if made, err := c.Apply(now); err != nil || !same(made, next) {
				r.Fatalf("%s with %s is %s, not %s: %v", now, c.Patch, made, next, err)
			}
			now, changes = next, append(changes, c)
		}
		if made := thread.ApplyActivityChanges(first, changes); !same(made, now) {
			r.Fatalf("all together: %s, not %s", made, now)
		}
	})
}

func same(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// TestActivityChangeIsShort: a change says no more than what is new.
func TestActivityChangeIsShort(t *testing.T) {
	t.Parallel()
	list := func(items ...string) json.RawMessage {
		return thread.MustJSON(map[string]any{"items": items, "title": strings.Repeat("a long title ", 20)})
	}
	for name, c := range map[string]struct {
		before, after json.RawMessage
		want          string
	}{
		"a member of many": {list("a", "b", "c"), list("a", "x", "c"),
			`[{"op":"replace","path":"/items/1","value":"x"}]`},
		"one in front": {list("a", "b"), list("x", "a", "b"), `[{"op":"add","path":"/items/0","value":"x"}]`},
		"one less":     {list("a", "b", "c"), list("a", "c"), `[{"op":"remove","path":"/items/1"}]`},
		"all":          {list("a"), json.RawMessage(`{"b":1}`), "null"},
		"a member that clients refuse": {
			json.RawMessage(`{"a":"` + strings.Repeat("a", 99) + `"}`),
			json.RawMessage(`{"a":"` + strings.Repeat("a", 99) + `","__proto__":1}`), "null",
		},
	} {
		change, is := thread.NewChange("m", c.before, c.after)
		if got := fmt.Sprint(string(thread.MustJSON(change.Patch))); !is || got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestForeignChange: what a document brings that nobody has written here is not applied.
func TestForeignChange(t *testing.T) {
	t.Parallel()
	content := json.RawMessage(`{"a":1}`)
	for _, patch := range []string{
		`[{"op":"copy","from":"/a","path":"/b"}]`, `[{"op":"move","from":"/a","path":"/b"}]`, `7`,
		`[{"op":"remove","path":"/x"}]`, `[{"op":"add","path":"/x/y/z","value":1}]`,
	} {
		c := []thread.ActivityChange{
			{Of: "m", Patch: json.RawMessage(patch)},
			{Of: "m", Patch: json.RawMessage(`[{"op":"replace","path":"/a","value":2}]`)},
		}
		if got := string(thread.ApplyActivityChanges(content, c)); got != `{"a":2}` {
			t.Errorf("%s: %s", patch, got)
		}
	}
	for _, data := range []string{
		`{"id":"m","role":"activity","activityType":"x","content":{},"metadata":{"holdfast":{"changes":7}}}`,
		`{"id":"m","role":"activity","activityType":"x","content":7,` +
			`"metadata":{"holdfast":{"changes":"a","patch":true}}}`,
		`{"id":"m","role":"user","content":"x","metadata":{"holdfast":{"changes":"a"}}}`,
	} {
		m, err := agui.DecodeMessage([]byte(data))
		if err != nil {
			t.Fatal(err)
		}
		if c, is := thread.ActivityChangeOf(&m); is {
			t.Errorf("%s: %+v", data, c)
		}
	}
}
