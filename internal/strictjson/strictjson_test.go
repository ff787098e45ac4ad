package strictjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/strictjson"
)

func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// many returns an object with n members of different names, and one more.
func many(n int, more string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"k%d":%d,`, i, i)
	}
	return "{" + b.String() + more + "}"
}

func shape() *strictjson.Shape {
	name := &strictjson.Shape{Kind: strictjson.String}
	inner := &strictjson.Shape{
		Kind:    strictjson.Object,
		Members: map[string]*strictjson.Shape{"name": name, "free": nil},
	}
	inner.Members["few"] = &strictjson.Shape{
		Elements: &strictjson.Shape{Kind: strictjson.Object},
		Most:     2,
		Total:    3,
		Noun:     "things",
	}
	return &strictjson.Shape{Kind: strictjson.Object, Members: map[string]*strictjson.Shape{
		"name": name,
		"free": nil,
		"list": {Kind: strictjson.List, Elements: inner, Most: 3, Noun: "entries"},
		"closed": {
			Kind:   strictjson.Object,
			Closed: true,
			Hint:   "Send keep and dryRun.",
			Members: map[string]*strictjson.Shape{
				"keep": nil, "dryRun": nil,
			},
		},
	}}
}

// TestCheck: what is refused, and what the error says; an empty message means that the
// body is accepted.
func TestCheck(t *testing.T) {
	for _, c := range []struct{ body, place, message string }{
		{`{}`, "", ""},
		{` { "name" : "a" , "free" : [ 1.5e3 , true , null , { "A" : 1 , "a" : 2 } ] } `, "", ""},
		{`{"name":null,"list":null,"closed":null,"unknown":{"name":7}}`, "", ""},
		{`{"list":[{"name":"a\\"},{"name":"b\""},{"few":"not a list"}]}`, "", ""},
		{`{"free":` + deep(255) + `}`, "", ""},
		{many(100, `"x":1`), "", ""},

		{"{\"name\":\"\xff\"}", "", "not UTF-8"},
		{`{"name":`, "", "not valid JSON"},
		{`{} {}`, "", "not valid JSON"},
		{`{"name":"a","name":"b"}`, "name", "name is there twice."},
		{`{"name":"a","n\u0061me":"b"}`, "name", "name is there twice."},
		{`{"n\u0061me":"a","name":"b"}`, "name", "name is there twice."},
		{`{"free":{"a":{"b":1,"b":1}}}`, "free.a.b", "free.a.b is there twice."},
		{`{"free":[0,{"b":1,"c":[],"b":1}]}`, "free[1].b", "free[1].b is there twice."},
		{many(20, `"k3":1`), "k3", "k3 is there twice."},
		{many(5000, `"k\u0033":1`), "k3", "k3 is there twice."},
		{`{"other":1,"other":2}`, "other", "other is there twice."},
		{`{"NAME":"a"}`, "NAME", `NAME is not spelled like the member "name".`},
		{`{"list":[{},{"Name":"a"}]}`, "list[1].Name", `list[1].Name is not spelled like the member "name".`},
		{"{\"clo\u017fed\":{}}", "clo\u017fed", `is not spelled like the member "closed".`},
		{`{"closed":{"kept":1}}`, "closed.kept", `There is no member "kept" here.`},
		{`{"closed":{"dryrun":1}}`, "closed.dryrun", `There is no member "dryrun" here.`},
		{`{"name":7}`, "name", "name has the wrong type: found number, wanted a string."},
		{`{"name":true}`, "name", "name has the wrong type: found bool, wanted a string."},
		{`{"na`, "", "not valid JSON"},
		{`{"list":{}}`, "list", "found object, wanted a list."},
		{`{"list":[{},"x"]}`, "list[1]", "found string, wanted an object."},
		{`{"list":[{},{},{},{}]}`, "list", "list holds more than 3 entries."},
		{`{"list":[{"few":[{},{},{}]}]}`, "list[0].few", "list[0].few holds more than 2 things."},
		{`{"list":[{"few":[{},{}]},{"few":[{},{}]}]}`, "list[1].few",
			"With list[1].few, the request holds more than 3 things."},
		{`{"free":` + deep(256) + `}`, "", "nested more than 256 deep"},
		{`{"free":` + deep(9_999) + `}`, "", "nested more than 256 deep"},
		{strings.Repeat("[", 1_000_000), "", "nested more than 256 deep"},
		{strings.Repeat(`{"a":`, 257) + "1" + strings.Repeat("}", 257), "", "nested more than 256 deep"},
		{`{"free":{"` + strings.Repeat("long", 100) + `":{"a":1,"a":1}}}`, "free." + strings.Repeat("long", 16) +
			"….a", "is there twice."},
	} {
		var refused *strictjson.Error
		_, err := strictjson.Check([]byte(c.body), shape())
		if c.message == "" {
			if err != nil {
				t.Errorf("%.80s is refused: %v", c.body, err)
			}
			continue
		}
		if !errors.As(err, &refused) || refused.Place != c.place || !strings.Contains(refused.Message, c.message) ||
			refused.Hint == "" {
			t.Errorf("%.80s\n got %+v\nwant %q at %q", c.body, err, c.message, c.place)
		}
	}
}

// TestDepth: brackets in texts do not count, and of what is no JSON the beginning does.
func TestDepth(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{``: 0, `7`: 0, `{"a":[[]],"b":{}}`: 3, `["[[[", "\"[["]`: 1, `[[{"a":`: 3} {
		if got := strictjson.Depth(text); got != want {
			t.Errorf("%s is %d deep, want %d", text, got, want)
		}
	}
}

// TestPlaceIsShort: an error stays readable, however deep its place is and however long
// the names on the way are.
func TestPlaceIsShort(t *testing.T) {
	body := strings.Repeat(`{"`+strings.Repeat("é", 100)+`":`, 200) + `{"a":1,"a":2}` + strings.Repeat("}", 200)
	_, err := strictjson.Check([]byte(body), nil)
	if err == nil || len(err.Error()) > 400 || !json.Valid([]byte(`"`+err.Error()+`"`)) {
		t.Errorf("%d bytes: %v", len(err.Error()), err)
	}
}

// TestTokens: a token is accepted exactly if encoding/json accepts it, wherever it is
// among the eight bytes that are read at once.
func TestTokens(t *testing.T) {
	tokens := strings.Fields(`0 -0 7 10 -12.50 1e9 1E+9 2.0e-07 01 -01 00 - -a +1 .5 1. 1.e3 1e 1e+ 1.5.5 0x1 1_0 NaN Infinity
		true false null True tru truee nul nullx fals falsee undefined 'a' "" "\"" "\\" "\/\b\f\n\r\t" "\u00e9\uD83D\uDE00" "\uDEAD"
		"\u12" "\u12g4" "\u" "\x" "\" " "\ "a"b "a""b" [] [[]] {} [1,] [,1] [1,,2] [1 ] [ {"a":1,} {,} {"a"} {"a":} {"a":1 {a:1} {1:1}
		{"a":1,"b":2} {"a":1;"b":2} {"a"=1} {"a":1]} [1} ] } , : é`)
	tokens = append(tokens, "", " ", "\v1", "1\x00", "\"\x00\"", "\"\x1f\"", "\"\x7f\"", "\"\t\"", "\"\n\"",
		"\"é\u2028🎉\"", " [ 1 , { \"a\" : \"b\" } ]\r\n\t ", "\ufeff1", "\u00a01")
	for _, token := range tokens {
		bodies := []string{token, "[" + token + "]", `{"a":` + token + `}`, token + " " + token}
		for n := range 17 {
			text := strings.Repeat("a", n)
			bodies = append(bodies, `["`+text+`",`+token+`]`, `"`+text+strings.Trim(token, `"`)+`"`,
				`"`+text+strings.Trim(token, `"`)+text+`"`)
		}
		for _, body := range bodies {
			if _, err := strictjson.Check([]byte(body), nil); (err == nil) != json.Valid([]byte(body)) {
				t.Errorf("%q: %v, but encoding/json says %v", body, err, json.Valid([]byte(body)))
			}
		}
	}
}

// FuzzCheck: no body makes it panic; what it accepts is JSON, and has no double names and
// no more levels than are allowed, as another reader finds; and what it says is not JSON is
// none for that reader, either.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"name":"a\\\"","free":[1,{"a":[{}, [] ,"\u0061"]}],"list":[{"few":[{},{}]}]}`))
	f.Add([]byte(`{"a":1,"\u0061":2}`))
	f.Add([]byte(`[-0.5e+7,true,false,null,"\uD83D\/ long enough for eight"]`))
	f.Add([]byte(many(40, `"":[]`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, s := range []*strictjson.Shape{shape(), nil} {
			_, err := strictjson.Check(body, s)
			if err != nil {
				if strings.Contains(err.Error(), "not valid JSON") && json.Valid(body) {
					t.Fatalf("valid JSON is refused: %q", body)
				}
				continue
			}
			dec := json.NewDecoder(bytes.NewReader(body))
			dec.UseNumber()
			levels := distinct(t, dec)
			if _, err := dec.Token(); err == nil || levels > strictjson.MaxDepth || !json.Valid(body) {
				t.Fatalf("%d levels, then %v: %q", levels, err, body)
			}
		}
	})
}

// distinct reads a value, fails the test if an object has a double name, and returns how
// deep the value is.
func distinct(t *testing.T, dec *json.Decoder) int {
	token, err := dec.Token()
	if err != nil {
		t.Fatal(err)
	}
	open, ok := token.(json.Delim)
	if !ok {
		return 0
	}
	names, most := map[string]bool{}, 0
	for dec.More() {
		if open == '{' {
			name, err := dec.Token()
			if err != nil || names[name.(string)] {
				t.Fatalf("%v is there twice (%v)", name, err)
			}
			names[name.(string)] = true
		}
		most = max(most, distinct(t, dec))
	}
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	return most + 1
}
