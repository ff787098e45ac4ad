package schema

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

type place struct {
	Street string `json:"street"`
	Zip    *int   `json:"zip,omitempty" jsonschema:"digits only"`
}

type trip struct {
	City   string            `json:"city" jsonschema:"where to go"`
	Days   int8              `json:"days"`
	Tags   []string          `json:"tags,omitempty"`
	Start  time.Time         `json:"start,omitzero"`
	End    *time.Time        `json:"end,omitempty"`
	Home   *place            `json:"home,omitempty"`
	Notes  map[string]string `json:"notes,omitempty"`
	Photo  []byte            `json:"photo,omitempty"`
	Extra  json.RawMessage   `json:"extra,omitempty"`
	Server netip.Addr        `json:"server,omitzero"`
	hidden int
	Secret string `json:"-"`
}

func mustFor[T any](t *testing.T) *Schema {
	t.Helper()
	s, err := For(reflect.TypeFor[T]())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestForDescribesAStruct(t *testing.T) {
	_ = trip{}.hidden
	const want = `{"type":"object","properties":{` +
		`"city":{"type":"string","description":"where to go"},` +
		`"days":{"type":"integer","minimum":-128,"maximum":127},` +
		`"tags":{"type":"array","items":{"type":"string"}},` +
		`"start":{"type":"string","format":"date-time"},` +
		`"end":{"type":"string","format":"date-time"},` +
		`"home":{"type":"object","properties":{"street":{"type":"string"},"zip":{"type":"integer",` +
		`"description":"digits only"}},"required":["street"],"additionalProperties":false},` +
		`"notes":{"type":"object","additionalProperties":{"type":"string"}},` +
		`"photo":{"type":"string","contentEncoding":"base64"},` +
		`"extra":{"description":"any JSON value"},` +
		`"server":{"type":"string"}},` +
		`"required":["city","days"],"additionalProperties":false}`
	got := string(mustFor[trip](t).JSON())
	if !sameJSON(t, got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if again := string(mustFor[trip](t).JSON()); again != got {
		t.Errorf("the text is not stable:\n%s\n%s", got, again)
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

func TestForRefusesWhatIsNoObject(t *testing.T) {
	type cycle struct {
		Next *cycle `json:"next,omitempty"`
	}
	type withFunc struct {
		F func() `json:"f"`
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[string](), reflect.TypeFor[[]int](), reflect.TypeFor[cycle](),
		reflect.TypeFor[withFunc](), reflect.TypeFor[any](), reflect.TypeFor[time.Time](),
	} {
		if s, err := For(typ); err == nil {
			t.Errorf("For(%s) = %s, want an error", typ, s.JSON())
		}
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[struct{}](), reflect.TypeFor[map[string]any](),
		reflect.TypeFor[*trip]()} {
		if _, err := For(typ); err != nil {
			t.Errorf("For(%s): %v", typ, err)
		}
	}
}

func TestValidateListsEveryViolation(t *testing.T) {
	s := mustFor[trip](t)
	tests := []struct{ name, give, want string }{
		{"right", `{"city":"Rome","days":3,"home":{"street":"x","zip":1},"notes":{"a":"b"}}`, ""},
		{"null for pointers and slices", `{"city":"Rome","days":3,"tags":null,"home":null,"end":null}`, ""},
		{"null for a string", `{"city":null,"days":3}`, `/city: null is null, but it must be a string`},
		{"many", `{"days":1200,"tags":"a","home":{"zip":"z"},"x":1}`,
			`"city" is missing; "x" is not a known member; /days: 1200 is more than the maximum 127; /home: "street" ` +
				`is missing; /home/zip: "z" is a string, but it must be an integer or null; /tags: "a" is a string, ` +
				`but it must be an array or null`},
		{"case matters", `{"City":"Rome","days":1}`, `"city" is missing; "City" is not a known member`},
		{"twice", `{"city":"Rome","city":"Paris","days":1}`, `"city" is given twice`},
		{
			"twice, deeper",
			`{"city":"Rome","days":1,"home":{"street":"a","street":"b"}}`,
			`/home: "street" is given twice`,
		},
		{"not an object", `[1]`, `[1] is an array, but it must be an object`},
		{"empty", ` `, `it is empty; it must be JSON`},
		{"cut", `{"city":"Ro`, `it is not complete JSON: unexpected end of JSON input`},
		{
			"not JSON",
			`{city: 1}`,
			`it is not JSON: invalid character 'c' looking for beginning of object key string (byte 2)`,
		},
		{"two values", `{} {}`, `it is not JSON: invalid character '{' after top-level value (byte 4)`},
		{"huge exponent", `{"city":"Rome","days":1e999999999}`, `/days: the number is out of range`},
		{
			"path is escaped",
			`{"city":"Rome","days":1,"notes":{"a/b~c":1}}`,
			`/notes/a~1b~0c: 1 is a number, but it must be a string`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if err := s.Validate(t.Context(), []byte(tt.give)); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestValidateKeywords(t *testing.T) {
	tests := []struct{ schema, give, want string }{
		{`{"enum":["a","b",3]}`, `"c"`, `"c" is not one of "a", "b", 3`},
		{`{"const":{"a":1}}`, `2`, `2 must be {"a":1}`},
		{`{"minimum":1.5}`, `1`, `1 is less than the minimum 1.5`},
		{`{"exclusiveMinimum":1}`, `1`, `1 must be more than 1`},
		{`{"exclusiveMaximum":1}`, `1`, `1 must be less than 1`},
		{`{"multipleOf":0.5}`, `0.7`, `0.7 is not a multiple of 0.5`},
		{`{"pattern":"^a+$"}`, `"b"`, `"b" does not match the pattern ^a+$`},
		{`{"minLength":2}`, `"é"`, `it has 1 characters, the minimum is 2`},
		{`{"maxLength":2}`, `"abc"`, `it has 3 characters, the maximum is 2`},
		{`{"minItems":1}`, `[]`, `it has 0 items, the minimum is 1`},
		{`{"maxItems":1}`, `[1,2]`, `it has 2 items, the maximum is 1`},
		{`{"uniqueItems":true}`, `[1,2,1]`, `the items 0 and 2 are equal, but each must be unique`},
		{`{"minProperties":1}`, `{}`, `it has 0 members, the minimum is 1`},
		{`{"maxProperties":0}`, `{"a":1}`, `it has 1 members, the maximum is 0`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `"b" is missing; "a" needs it`},
		{`{"anyOf":[{"type":"string"},{"type":"object","required":["a"]}]}`, `{}`,
			`none of the allowed forms fits ({} is an object, but it must be a string | "a" is missing)`},
		{
			`{"oneOf":[{"type":"number"},{"minimum":1}]}`,
			`2`,
			`more than one of the allowed forms fits; exactly one must`,
		},
		{`{"properties":{"a":false}}`, `{"a":1}`, `/a: no value is allowed here`},
		{`{"allOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, `"a" is missing; "b" is missing`},
		{`{"$ref":"#/$defs/n","$defs":{"n":{"type":"integer"}}}`, `"x"`, `"x" is a string, but it must be an integer`},
		{
			`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"n":{"type":"integer"}},` +
				`"items":{"$ref":"#/definitions/n"}}`,
			`["x"]`,
			`/0: "x" is a string, but it must be an integer`,
		},
		{`{"not":{"type":"string"}}`, `"x"`, `'not' failed`},
		{`true`, `1`, ``},
		{`{}`, `1`, ``},
	}
	for _, tt := range tests {
		s, err := Compile([]byte(tt.schema))
		if err != nil {
			t.Errorf("%s: %v", tt.schema, err)
			continue
		}
		got := ""
		if err := s.Validate(t.Context(), []byte(tt.give)); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s on %s:\ngot  %s\nwant %s", tt.schema, tt.give, got, tt.want)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, raw := range []string{
		``, `{`, `{"type":"strange"}`, `{"$ref":"https://example.com/schema.json"}`, `{"$ref":"file:///etc/passwd"}`,
		`{"$schema":"https://example.com/meta"}`, `{"minimum":1e999999999}`, `{"$ref":"#/nowhere"}`,
	} {
		if _, err := Compile([]byte(raw)); err == nil {
			t.Errorf("%s: no error", raw)
		}
	}
}

func TestCompileKeepsTheTextAndDropsPatternsGoCannotRead(t *testing.T) {
	const raw = `{ "type": "object",
		"properties": {"pattern": {"type": "string", "pattern": "^(?!x)"}, "n": {"type": "integer"}},
		"patternProperties": {"(?<=a)b": {"type": "integer"}, "^k": {"type": "string"}},
		"additionalProperties": false, "default": {"pattern": "(?!"} }`
	s, err := Compile([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(s.JSON()), `"pattern":"^(?!x)"`) || strings.Contains(string(s.JSON()), "\n") {
		t.Errorf("the text is not the schema's own, compacted: %s", s.JSON())
	}
	if err := s.Validate(t.Context(), []byte(`{"pattern":"x","other":1}`)); err != nil {
		t.Errorf("a member that only the dropped pattern could allow is refused: %v", err)
	}
	err = s.Validate(t.Context(), []byte(`{"n":"x","k1":1}`))
	if want := `/k1: 1 is a number, but it must be a string; /n: "x" is a string, but it must be an integer`; err ==
		nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestValidateBoundsItsMessage(t *testing.T) {
	s, err := Compile([]byte(`{"items":{"type":"string"}}`))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Validate(t.Context(), []byte("[1"+strings.Repeat(",1", 10_000)+"]"))
	if err == nil || len(err.Error()) > 5000 || !strings.HasSuffix(err.Error(), "; and more") {
		t.Errorf("got %v", err)
	}
	deep := strings.Repeat("[", 1_000_000)
	if err := s.Validate(t.Context(), []byte(deep)); err == nil {
		t.Error("no error for a million open brackets")
	}
}

func FuzzValidate(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"integer","minimum":1}},"required":["a"]}`,
		`{"a":0,"b":[1,{"c":null}]}`)
	f.Add(`{"anyOf":[{"const":1},{"pattern":"^a"}]}`, `"b"`)
	f.Add(`{"$ref":"#"}`, `1e400`)
	f.Add(`{"items":[{"enum":[1,"x"]}],"additionalItems":false,"uniqueItems":true}`, `[2,2,{}]`)
	f.Add(`{"patternProperties":{"(?!":{}},"unevaluatedProperties":false}`, `{"a":1,"a":2}`)
	f.Add(levels(40, func(next string) string { return `{"allOf":[` + next + `,` + next + `]}` }, `{"type":"object"}`),
		`{}`)
	f.Add(
		`{"$defs":{"n":{"allOf":[{"properties":{"a":{"$ref":"#/$defs/n"}}},{"properties":{"a":{"$ref":"#/$defs/n"}}}`+
			`]}},"$ref":"#/$defs/n"}`,
		`{"a":{"a":{"a":{}}}}`,
	)
	f.Add(`{"$dynamicAnchor":"n","anyOf":[{"$dynamicRef":"#n"},{"items":{"$dynamicRef":"#n"}}]}`, `[[[]]]`)
	f.Add(
		`{"dependentSchemas":{"a":{"not":{"if":{"const":{}},"then":false}}},`+
			`"unevaluatedItems":{"pattern":"(a{9}){9}"}}`,
		`{"a":"aaa"}`,
	)
	f.Add(`{"$id":"http://a/","$defs":{"x":{"$id":"b","$anchor":"c"}},"$ref":"b#c","oneOf":[{"$ref":"#/$defs/x"}]}`,
		`1`)
	inferred, err := For(reflect.TypeFor[trip]())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, schema, value string) {
		check := func(s *Schema) {
			if err := s.Validate(t.Context(), []byte(value)); err != nil && err.Error() == "" {
				t.Error("an error without a text")
			}
		}
		check(inferred)
		if s, err := Compile([]byte(schema)); err == nil {
			if !json.Valid(s.JSON()) {
				t.Errorf("not JSON: %s", s.JSON())
			}
			check(s)
		}
	})
}
