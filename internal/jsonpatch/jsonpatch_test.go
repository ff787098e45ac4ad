package jsonpatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// gen makes random documents.
type gen struct{ *rand.Rand }

var (
	names = []string{"a", "b", "c", "items", "~", "/", "a/b", "m~n", "", "0", "-", `q"uote`, "né", "\u0001", "日本",
		"😀", `\`, "x y"}
	scalars = []string{"0", "1", "-1.5", "1e3", "12345678901234567890", "true", "false", "null", `""`, `"text"`,
		`"\u00e9"`, `"é"`, `"\ud83d\ude00"`, `"a\nb\"c\\d"`, `"\/"`, "0.1"}
)

func (g gen) value(depth int) any {
	n := g.IntN(10)
	switch {
	case depth > 0 && n < 4:
		object := map[string]any{}
		for range g.IntN(6) {
			object[names[g.IntN(len(names))]] = g.value(depth - 1)
		}
		return object
	case depth > 0 && n < 7:
		list := []any{}
		for range g.IntN(7) {
			list = append(list, g.value(depth-1))
		}
		return list
	}
	return json.RawMessage(scalars[g.IntN(len(scalars))])
}

// change changes some of a value.
func (g gen) change(v any, depth int) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, inner := range v {
			switch g.IntN(6) {
			case 0:
			case 1, 2:
				out[name] = g.change(inner, depth-1)
			default:
				out[name] = inner
			}
		}
		if g.IntN(3) == 0 {
			out[names[g.IntN(len(names))]] = g.value(max(0, depth-1))
		}
		return out
	case []any:
		out := slices.Clone(v)
		for range g.IntN(3) {
			switch n := len(out); {
			case n > 0 && g.IntN(3) == 0:
				i := g.IntN(n)
				out = slices.Delete(out, i, i+1)
			case n > 1 && g.IntN(3) == 0:
				i, j := g.IntN(n), g.IntN(n)
				out[i], out[j] = out[j], out[i]
			case n > 0 && g.IntN(2) == 0:
				i := g.IntN(n)
				out[i] = g.change(out[i], depth-1)
			default:
				out = slices.Insert(out, g.IntN(n+1), g.value(max(0, depth-1)))
			}
		}
		return out
	}
	if g.IntN(2) == 0 {
		return g.value(max(0, depth))
	}
	return v
}

// text writes a value as JSON: with the members in a random order, some names with escapes, and white space.
func (g gen) text(v any) string {
	space := []string{"", "", "", " ", "\n\t"}[g.IntN(5)]
	switch v := v.(type) {
	case map[string]any:
		var members []string
		for name, inner := range v {
			quoted, _ := json.Marshal(name)
			if g.IntN(4) == 0 {
				quoted = []byte{'"'}
				for _, r := range name {
					if r > 0xFFFF {
						r -= 0x10000
						quoted = fmt.Appendf(quoted, `\u%04x\u%04X`, 0xD800+r>>10, 0xDC00+r&0x3FF)
						continue
					}
					quoted = fmt.Appendf(quoted, `\u%04x`, r)
				}
				quoted = append(quoted, '"')
			}
			members = append(members, string(quoted)+space+":"+space+g.text(inner))
		}
		slices.Sort(members)
		g.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		return "{" + space + strings.Join(members, ","+space) + space + "}"
	case []any:
		var list []string
		for _, inner := range v {
			list = append(list, g.text(inner))
		}
		return "[" + space + strings.Join(list, space+",") + "]"
	}
	return string(v.(json.RawMessage))
}

// pair makes a document and what became of it.
func (g gen) pair() (before, after string) {
	v := g.value(4)
	w := g.value(4)
	if g.IntN(8) > 0 {
		w = g.change(v, 4)
	}
	return g.text(v), g.text(w)
}

// equal reports whether two documents mean the same, with numbers as they are written.
func equal(t *testing.T, a, b []byte) bool {
	t.Helper()
	patch, err := Diff(a, b)
	return err == nil && string(patch) == None && canonical(t, a) == canonical(t, b)
}

func canonical(t *testing.T, text []byte) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestDiffApplies: a patch makes one document into the other, and patches of a sequence give the same
// together as one by one.
func TestDiffApplies(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3_000) {
		g := gen{rand.New(rand.NewPCG(seed, 7))}
		before, after := g.pair()
		patch, err := Diff([]byte(before), []byte(after))
		if err != nil {
			t.Fatalf("seed %d: %s to %s: %v", seed, before, after, err)
		}
		if !json.Valid(patch) {
			t.Fatalf("seed %d: the patch is no JSON: %s", seed, patch)
		}
		got, err := Apply([]byte(before), patch)
		if err != nil || !equal(t, got, []byte(after)) {
			t.Fatalf("seed %d: %s with %s gives %s, %v; want %s", seed, before, patch, got, err, after)
		}
		third := g.text(g.change(g.value(3), 3))
		next, err := Diff(got, []byte(third))
		if err != nil {
			t.Fatal(err)
		}
		one, err1 := Apply(got, next)
		both, err2 := Apply([]byte(before), patch, next)
		if err1 != nil || err2 != nil || string(one) != string(both) {
			t.Fatalf("seed %d: one by one %s, %v; together %s, %v", seed, one, err1, both, err2)
		}
	}
}

// TestDiffSays: what patches look like.
func TestDiffSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ before, after, want string }{
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, `[]`},
		{`{"a": [1, 2]}`, `{"a":[1,2]}`, `[]`},
		{`{"text":"one","n":1}`, `{"text":"one","n":2}`, `[{"op":"replace","path":"/n","value":2}]`},
		{`{"a/b":{"m~n":[1,2,3,4,5,6,7,8,9,0]},"x":"yyyyyyyyyy"}`,
			`{"a/b":{"m~n":[1,2,3,4,5,6,7,8,9]},"x":"yyyyyyyyyy"}`, `[{"op":"remove","path":"/a~1b/m~0n/9"}]`},
		{`[{"id":1,"name":"one two three"},{"id":2,"name":"one two three"},{"id":3,"name":"one two three"}]`,
			`[{"id":2,"name":"one two three"},{"id":3,"name":"one two three"}]`, `[{"op":"remove","path":"/0"}]`},
		{`{"\u0061":"a text that is long enough","c":1}`, `{"a":"a text that is long enough"}`,
			`[{"op":"remove","path":"/c"}]`},
		{`1`, `2`, `[{"op":"replace","path":"","value":2}]`},
		{`{"steps":["cut all the onions","fry all the onions"]}`,
			`{"steps":["cut all the onions","fry all the onions","eat"]}`,
			`[{"op":"add","path":"/steps/2","value":"eat"}]`},
	} {
		if got, err := Diff([]byte(c.before), []byte(c.after)); err != nil || string(got) != c.want {
			t.Errorf("%s to %s: %s, %v; want %s", c.before, c.after, got, err, c.want)
		}
	}
}

// TestNoPatch: what stock clients would refuse, or understand in another way, is no patch.
func TestNoPatch(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{`{"__proto__":{"a":1},"text":"long enough that it is not replaced"}`,
			`{"__proto__":{"a":2},"text":"long enough that it is not replaced"}`},
		{`{"a":1,"a":2}`, `{"a":3}`},
		{`{"a":1}`, `{"a":3,"\u0061":4}`},
		{`{"\ud800":1}`, `{"a":3}`},
		{`{"1":1,"2":2,"3":3,"4":4,"5":5,"6":6,"7":7,"8":8,"9":9,"1":0}`, `{}`},
		{`{`, `{}`}, {`{}`, `[1,]`}, {`{"a"}`, `1`}, {`[1 2]`, `1`}, {`{} 1`, `1`}, {``, `1`}, {`"a`, `1`},
	} {
		if got, err := Diff([]byte(c[0]), []byte(c[1])); !errors.Is(err, ErrNoPatch) {
			t.Errorf("%s to %s: %s, %v", c[0], c[1], got, err)
		}
	}
}

// TestOperations: each operation, as RFC 6902 says and the official client does it.
func TestOperations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ doc, patch, want string }{
		{`{"a":[1,2]}`, `[{"op":"add","path":"/a/-","value":3}]`, `{"a":[1,2,3]}`},
		{`{"a":[1,2]}`, `[{"op":"add","path":"/a/1","value":{"x": 1}}]`, `{"a":[1,{"x": 1},2]}`},
		{`{"a":1}`, `[{"op":"add","path":"/a","value":null}]`, `{"a":null}`},
		{`{"a":1}`, `[{"op":"add","path":"/\u0001\"~1","value":2}]`, `{"a":1,"\u0001\"/":2}`},
		{`{"a":1,"b":2}`, `[{"op":"move","from":"/a","path":"/c"}]`, `{"b":2,"c":1}`},
		{`[1,2,3]`, `[{"op":"move","from":"/0","path":"/2"}]`, `[2,3,1]`},
		{`{"a":{"b":1}}`, `[{"op":"copy","from":"/a","path":"/c"},{"op":"replace","path":"/c/b","value":2}]`,
			`{"a":{"b":1},"c":{"b":2}}`},
		{`{"a":1.0}`, `[{"op":"test","path":"/a","value":1},{"op":"remove","path":"/a"}]`, `{}`},
		{`{"a":1}`, `[{"op":"test","path":"","value":{"a":1}},{"op":"replace","path":"","value":[]}]`, `[]`},
		{`{"a":1}`, `[{"op":"add","path":"","value":2}]`, `2`},
		{`{"a":1}`, `[{"op":"remove","path":""}]`, `null`},
		{`{"":{"":1}}`, `[{"op":"replace","path":"//","value":2}]`, `{"":{"":2}}`},
		{`{"a":1}`, `[{"op":"move","from":"/a","path":"/a"}]`, `{"a":1}`},
		{`{"a":1}`, `[{"op":"remove","path":"/b"}]`, ``},
		{`{"a":1}`, `[{"op":"replace","path":"/b","value":1}]`, ``},
		{`{"a":1}`, `[{"op":"add","path":"/b/c","value":1}]`, ``},
		{`{"a":1}`, `[{"op":"add","path":"/a/c","value":1}]`, ``},
		{`[1]`, `[{"op":"add","path":"/2","value":1}]`, ``},
		{`[1]`, `[{"op":"add","path":"/01","value":1}]`, ``},
		{`[1]`, `[{"op":"remove","path":"/-"}]`, ``},
		{`[1]`, `[{"op":"test","path":"/0","value":"1"}]`, ``},
		{`{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":"/a/b"}]`, ``},
		{`{"a":1}`, `[{"op":"add","path":"a","value":1}]`, ``},
		{`{"a":1}`, `[{"op":"add","path":"/~2","value":1}]`, ``},
		{`{"a":1}`, `[{"op":"add","path":"/b"}]`, ``},
		{`{"a":1}`, `[{"op":"add","value":1}]`, ``},
		{`{"a":1}`, `[{"op":"move","path":"/b"}]`, ``},
		{`{"a":1}`, `[{"op":"copy","from":"x","path":"/b"}]`, ``},
		{`{"a":1}`, `[{"op":"copy","from":"/x","path":"/b"}]`, ``},
		{`{"a":1}`, `[{"op":"jump","path":"/b"}]`, ``},
		{`{"a":1}`, `{}`, ``},
		{`{"a":1]`, `[{"op":"add","path":"/b","value":1}]`, ``},
		{`[1}`, `[{"op":"add","path":"/0","value":1}]`, ``},
		{`{"a" 1}`, `[{"op":"add","path":"/0","value":1}]`, ``},
		{`{"\ud800":1}`, `[{"op":"add","path":"/0","value":1}]`, ``},
	} {
		got, err := Apply([]byte(c.doc), []byte(c.patch))
		if (err != nil) != (c.want == "") || string(got) != c.want {
			t.Errorf("%s with %s: %s, %v; want %q", c.doc, c.patch, got, err, c.want)
		}
	}
}

// TestMerge has the examples of RFC 7396.
func TestMerge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ doc, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		if got, err := Merge([]byte(c.doc), []byte(c.patch)); err != nil || string(got) != c.want {
			t.Errorf("%s with %s: %s, %v; want %s", c.doc, c.patch, got, err, c.want)
		}
	}
	if _, err := Merge([]byte(`{"a"`), []byte(`{"a":1}`)); err == nil {
		t.Error("what is no JSON is merged")
	}
}

// TestClean: of two members of one name the last one stays, and every byte is UTF-8.
func TestClean(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`{"a": 1}`:                          `{"a": 1}`,
		`{"a":1,"b":{"c":1,"c":2}}`:         `{"a":1,"b":{"c":2}}`,
		`[{"a":1,"\u0061":{"x":1}, "b":2}]`: `[{"\u0061":{"x":1},"b":2}]`,
		"{\"a\":\"\xff\"}":                  `{"a":"` + "\uFFFD" + `"}`,
	} {
		if got, err := Clean([]byte(doc)); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", doc, got, err, want)
		}
	}
}

// page is a document of about 100 KB.
func page(changed int) []byte {
	type item struct {
		ID    int      `json:"id"`
		Name  string   `json:"name"`
		Tags  []string `json:"tags"`
		Price float64  `json:"price"`
		Done  bool     `json:"done"`
	}
	var items []item
	for i := range 860 {
		one := item{i, fmt.Sprintf("The item with the number %d of this list", i), []string{"red", "green", "blue"},
			float64(i) * 1.25, i%3 == 0}
		if changed > 0 && i%(860/changed) == 3 {
			one.Name = fmt.Sprintf("The item %d has another name now", i)
		}
		items = append(items, one)
	}
	text, err := json.Marshal(map[string]any{"title": "A list", "items": items, "view": map[string]any{"page": 1}})
	if err != nil {
		panic(err)
	}
	return text
}

// TestDiffIsCheap: ten changes in a document of 100 KB are found with few allocations, and said in few bytes.
func TestDiffIsCheap(t *testing.T) {
	before, after := page(0), page(10)
	if len(before) < 85_000 {
		t.Fatalf("the document has %d bytes", len(before))
	}
	patch, err := Diff(before, after)
	if err != nil || len(patch) > 1_200 {
		t.Fatalf("the patch has %d bytes, %v", len(patch), err)
	}
	if n := testing.AllocsPerRun(10, func() { _, _ = Diff(before, after) }); n > 200 {
		t.Errorf("%.0f allocations", n)
	}
}

func BenchmarkDiff(b *testing.B) {
	before, after := page(0), page(10)
	b.SetBytes(int64(len(before)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Diff(before, after); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkApply(b *testing.B) {
	before, after := page(0), page(10)
	patch, err := Diff(before, after)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Apply(before, patch); err != nil {
			b.Fatal(err)
		}
	}
}

// TestThreeWay: what one has changed is as that one has it, and what both have changed differently is told.
func TestThreeWay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ base, theirs, yours, want, conflicts string }{
		{`{"a":1,"b":1}`, `{"a":2,"b":1}`, `{"a":1,"b":3}`, `{"a":2,"b":3}`, `null`},
		{`{"a":1}`, `{"a":1}`, `{"b":2}`, `{"b":2}`, `null`},
		{`{"a":1}`, `{"a":2}`, `{"a":1}`, `{"a":2}`, `null`},
		{`{"a":1}`, `{"a":2}`, `{"a":2.0}`, `{"a":2}`, `null`},
		{`{"a":2.0,"b":"\u00e9","c":12345678901234567890}`, `{"a":2.0,"b":"\u00e9","c":12345678901234567890,"d":1}`,
			`{"a":2,"b":"é","c":12345678901234567000}`, `{"a":2.0,"b":"\u00e9","c":12345678901234567890,"d":1}`,
			`null`},
		{``, ``, `{"a":1}`, `{"a":1}`, `null`},
		{``, `{"a":1,"c":1}`, `{"a":2,"b":1}`, `{"a":1,"c":1,"b":1}`, `[{"path":"/a","yours":2,"theirs":1}]`},
		{`{"a":1}`, `{"a": 2}`, `{"a":2}`, `{"a":2}`, `null`},
		{`{}`, `{"x/~":{"a":1}}`, `{"x/~":{"b":2}}`, `{"x/~":{"a":1,"b":2}}`, `null`},
		{`{}`, `{"x/~":{"a":1}}`, `{"x/~":{"a":2}}`, `{"x/~":{"a":1}}`, `[{"path":"/x~1~0/a","yours":2,"theirs":1}]`},
		{`{"a":1}`, `{}`, `{"a":2}`, `{}`, `[{"path":"/a","yours":2}]`},
		{`{"a":1}`, `{"a":2}`, `{}`, `{"a":2}`, `[{"path":"/a","theirs":2}]`},
		{`{"a":1,"b":1}`, `{"b":1}`, `{"a":1}`, `{}`, `null`},
		{`{"a":[1]}`, `{"a":[1,2]}`, `{"a":[0,1]}`, `{"a":[1,2]}`, `[{"path":"/a","yours":[0,1],"theirs":[1,2]}]`},
		{`null`, `{"a":1}`, `{"b":2}`, `{"a":1,"b":2}`, `null`},
		{`1`, `2`, `3`, `2`, `[{"path":"","yours":3,"theirs":2}]`},
	} {
		got, err := ThreeWay([]byte(c.base), []byte(c.theirs), []byte(c.yours), false)
		told, _ := json.Marshal(got.Conflicts)
		if err != nil || string(got.Doc) != c.want || string(told) != c.conflicts || got.Count != len(got.Conflicts) {
			t.Errorf("%s, %s and %s: %s %s %v; want %s %s", c.base, c.theirs, c.yours, got.Doc, told, err, c.want,
				c.conflicts)
		}
		mine, err := ThreeWay([]byte(c.base), []byte(c.yours), []byte(c.theirs), true)
		if err != nil || !Alike(mine.Doc, []byte(c.want)) {
			t.Errorf("%s, %s and %s: with mine first %s, %v", c.base, c.yours, c.theirs, mine.Doc, err)
		}
	}
}

// TestChangeIsBounded: what somebody else asks for cannot grow without bound, nor take long.
func TestChangeIsBounded(t *testing.T) {
	t.Parallel()
	const double = `{"op":"copy","from":"","path":"/-"},`
	bomb := "[" + strings.TrimSuffix(strings.Repeat(double, 100), ",") + "]"
	if got, err := Change([]byte(`["text"]`), []byte(bomb)); err == nil {
		t.Errorf("a document of %d bytes was made", len(got))
	}
	test := `{"op":"test","path":"","value":0},`
	many := "[" + strings.TrimSuffix(strings.Repeat(test, 1001), ",") + "]"
	if err := Check([]byte(many)); err == nil || !strings.Contains(err.Error(), "may have 1000") {
		t.Errorf("1,001 operations: %v", err)
	}
	if _, err := Change([]byte("0"), []byte(many)); err == nil {
		t.Error("1,001 operations are carried out")
	}
	if got, err := Change([]byte(`["text"]`), []byte("["+double[:len(double)-1]+"]")); err != nil ||
		string(got) != `["text",["text"]]` {
		t.Errorf("one copy gives %s, %v", got, err)
	}
	deeper := `{"op":"add","path":"/x","value":{}},{"op":"move","from":"/a","path":"/x/a"},{"op":"move",` +
		`"from":"/x","path":"/a"},`
	deep, depths := []byte(`{"a":"]}[{"}`), 0
	for err := error(nil); err == nil && depths < 5; depths++ {
		var next []byte
		next, err = Change(deep, []byte("["+strings.TrimSuffix(strings.Repeat(deeper, 300), ",")+"]"))
		deep = next
	}
	if depths != 4 {
		t.Errorf("the document was made deeper %d times", depths)
	}
	large := `"` + strings.Repeat("x", 5<<20) + `"`
	if _, err := Change([]byte(`[`+large+`]`), []byte(`[{"op":"copy","from":"/0","path":"/-"}]`)); !errors.Is(err,
		errLarge) {
		t.Errorf("a document of 10 MB: %v", err)
	}
	if _, err := Change([]byte(`[`+large+`,`+large+`]`), []byte(`[{"op":"remove","path":"/0"}]`)); err != nil {
		t.Errorf("a document of 10 MB that becomes smaller: %v", err)
	}
	var doc, merge strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&doc, `,"a%d":1`, i)
		fmt.Fprintf(&merge, `,"a%d":null,"b%d":2`, i, i)
	}
	got, err := Merge([]byte("{"+doc.String()[1:]+"}"), []byte("{"+merge.String()[1:]+"}"))
	if err != nil || !strings.HasPrefix(string(got), `{"b0":2,"b1":2,`) || strings.Contains(string(got), `"a`) {
		t.Errorf("a large merge gives %.50s, %v", got, err)
	}
}
