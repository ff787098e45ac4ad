package thread

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/jsonpatch"
)

// line is the versions of a state as a store keeps them.
type line struct {
	blobs   map[string][]byte
	now     Shared
	wholes  int
	written int
	format  int
}

func newLine() *line { return &line{blobs: map[string][]byte{}, format: Format} }

func (l *line) find(name string) ([]byte, bool) { data, there := l.blobs[name]; return data, there }

// change makes the next version.
func (l *line) change(t *testing.T, next string) *SharedChange {
	t.Helper()
	l.wholes++
	c := l.now.Change(json.RawMessage(next), fmt.Sprintf("s/msg_%d", l.wholes), l.format, "msg", time.UnixMilli(1))
	if c == nil {
		return nil
	}
	if l.blobs[c.Put.ID] != nil {
		t.Fatalf("%s is written twice", c.Put.ID)
	}
	l.blobs[c.Put.ID], l.now, l.written = c.Put.Data, c.Shared, l.written+len(c.Put.Data)
	return c
}

// large is a document of about 100 KB in which some places have another text.
func large(places ...int) string {
	var items []string
	for i := range 1000 {
		text := fmt.Sprintf("item %d of this list has a text that is rather long, as texts are in documents", i)
		if slices.Contains(places, i) {
			text = fmt.Sprintf("%d has changed, %d times, to a text of some 50 bytes", i, len(places))
		}
		items = append(items, fmt.Sprintf(`{"id":%d,"text":%q}`, i, text))
	}
	return `{"items":[` + strings.Join(items, ",") + `]}`
}

// TestSharedCostsWhatChanges: what is stored depends on what changes, each version is read as it was made, and
// the line begins with a whole document again before its patches are many times as large as that.
func TestSharedCostsWhatChanges(t *testing.T) {
	t.Parallel()
	l := newLine()
	l.change(t, large())
	first, want := l.written, map[string]string{}
	const changes = 100
	var places []int
	for i := range changes {
		places = append(places, i*7)
		c := l.change(t, large(places[max(0, len(places)-3):]...))
		if c.Patch == nil {
			t.Fatalf("change %d is stored whole", i)
		}
		want[c.ID] = string(c.State)
	}
	if each := (l.written - first) / changes; each > 700 {
		t.Errorf("each change of three texts takes %d bytes", each)
	}
	for id, state := range want {
		if got, err := SharedIn(id, l.find); err != nil || string(got.State) != state {
			t.Errorf("%s is read as %.80s, %v", id, got.State, err)
		}
	}
	small := newLine()
	small.change(t, `{"n":0,"text":"`+strings.Repeat("x", 1000)+`"}`)
	wholes := 0
	for i := range 100 {
		if c := small.change(t, fmt.Sprintf(`{"n":%d,"text":"%s"}`, i+1, strings.Repeat("x", 1000))); c.Patch == nil {
			wholes++
		}
		if got := len(SharedParts(small.now.ID)); got > 60 {
			t.Fatalf("a state of 1 KB is read from %d parts", got)
		}
	}
	if wholes < 2 || wholes > 10 {
		t.Errorf("%d of 100 versions are whole", wholes)
	}
}

// TestSharedVersions: random documents, one after the other.
func TestSharedVersions(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	l := newLine()
	for range 400 {
		doc := map[string]any{"pad": strings.Repeat("y", 300)}
		for range r.IntN(4) {
			doc[string(rune('a'+r.IntN(6)))] = []any{r.IntN(3), strings.Repeat("z", r.IntN(60))}
		}
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		before := l.now
		c := l.change(t, string(text))
		got, err := SharedIn(l.now.ID, l.find)
		if err != nil || !jsonpatch.Equal(got.State, text) || string(got.State) != string(l.now.State) {
			t.Fatalf("%s is read as %s, %v, want %s", l.now.ID, got.State, err, text)
		}
		if got.patches != l.now.patches {
			t.Fatalf("%s has %d bytes of patches, and %d when it is read", l.now.ID, l.now.patches, got.patches)
		}
		if c == nil && !jsonpatch.Equal(before.State, text) {
			t.Fatalf("%s to %s is no change", before.State, text)
		}
	}
}

// TestSharedWhole: a version is whole where nothing comes before it, where older servers read it, where a patch
// would be larger, or where there is none.
func TestSharedWhole(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 500)
	for name, c := range map[string]struct {
		format        int
		before, after string
		whole         bool
	}{
		"a patch":          {Format, `{"a":1,"b":"` + text + `"}`, `{"a":2,"b":"` + text + `"}`, false},
		"the first":        {Format, ``, `{"a":2,"b":"` + text + `"}`, true},
		"an older format":  {1, `{"a":1,"b":"` + text + `"}`, `{"a":2,"b":"` + text + `"}`, true},
		"another document": {Format, `{"a":"` + text + `"}`, `{"b":"` + text + `"}`, true},
		"a small one":      {Format, `{"a":1}`, `{"a":2}`, true},
		"a name that clients refuse": {
			Format, `{"__proto__":1,"b":"` + text + `"}`, `{"__proto__":2,"b":"` + text + `"}`, true,
		},
	} {
		l := newLine()
		l.format = c.format
		if c.before != "" {
			l.change(t, c.before)
		}
		got := l.change(t, c.after)
		if (got.Patch == nil) != c.whole ||
			!jsonpatch.Equal(got.State, []byte(c.after)) && name != "a name that clients refuse" {
			t.Errorf("%s: %+v", name, got)
		}
		if _, delta := got.Event(true).(agui.StateDeltaRef); delta == c.whole {
			t.Errorf("%s is shown as %+v", name, got.Event(true))
		}
		if _, whole := got.Event(false).(agui.StateRef); !whole {
			t.Errorf("%s is shown first as %+v", name, got.Event(false))
		}
	}
	l := newLine()
	l.change(t, `{"a":1,"b":2}`)
	if c := l.change(t, `{"b":2,"a":1}`); c != nil {
		t.Errorf("the same document in another order is the change %+v", c)
	}
}

// TestSharedDamaged: a version that lacks a part, or has one that cannot be read, is refused.
func TestSharedDamaged(t *testing.T) {
	t.Parallel()
	l := newLine()
	l.change(t, large())
	l.change(t, large(1))
	l.change(t, large(1, 2))
	parts := SharedParts(l.now.ID)
	if len(parts) != 3 {
		t.Fatalf("the parts are %q", parts)
	}
	for _, part := range parts {
		kept := l.blobs[part]
		delete(l.blobs, part)
		if _, err := SharedIn(l.now.ID, l.find); !errors.Is(err, ErrNoBlob) {
			t.Errorf("without %s: %v", part, err)
		}
		for _, other := range []string{`{`, `{"dataFormat":2,"at":1,"patch":[{"op":"remove","path":"/nothing"}]}`} {
			l.blobs[part] = []byte(other)
			if _, err := SharedIn(l.now.ID, l.find); part != parts[0] && !errors.Is(err, ErrUnreadable) {
				t.Errorf("with %s in %s: %v", other, part, err)
			}
		}
		l.blobs[part] = kept
	}
	for _, name := range []string{"s+", "s+0", "s+01", "s+-1", "s+x", "s+9999999999", "s"} {
		if got := SharedParts(name); len(got) != 1 || got[0] != name {
			t.Errorf("%s has the parts %q", name, got)
		}
	}
}

// BenchmarkSharedChange makes 1,000 changes of 50 bytes in a document of 100 KB, and says what is stored for them
// besides the first document: the versions, and the records that name them.
func BenchmarkSharedChange(b *testing.B) {
	for b.Loop() {
		l, t := newLine(), &testing.T{}
		doc := large()
		l.change(t, doc)
		first, records := l.written, 0
		for i := range 1000 {
			was := fmt.Sprintf(`{"id":%d,"text":"item %[1]d of this list has a text that is rather long`, i)
			doc = strings.Replace(doc, was,
				fmt.Sprintf(`{"id":%d,"text":"another text of fifty bytes, or a few more %[1]d`, i), 1)
			c := l.change(t, doc)
			records += len(agui.Append(nil, c.Event(true)))
		}
		b.ReportMetric(float64(l.written-first), "bytes")
		b.ReportMetric(float64(records), "recordbytes")
	}
}
