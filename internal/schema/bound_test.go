package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// steps returns how many steps a check takes, and its problems.
func steps(t *testing.T, schema, value string) (int, []string, error) {
	t.Helper()
	s, err := Compile([]byte(schema))
	if err != nil {
		t.Fatalf("%.100s: %v", schema, err)
	}
	decoded, _ := decode([]byte(value))
	c := newCheck(t.Context(), s)
	problems, err := c.run(s, decoded)
	return MaxChecking - c.left, problemTexts(problems), err
}

// listOf returns n texts with commas between them.
func listOf(n int, text func(i int) string) string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = text(i)
	}
	return strings.Join(texts, ",")
}

// levels returns a schema of n levels, each made from a reference to the next.
func levels(n int, level func(next string) string, last string) string {
	return fmt.Sprintf(`{"$defs":{%s,"a%d":%s},"$ref":"#/$defs/a0"}`, listOf(n, func(i int) string {
		return fmt.Sprintf(`"a%d":%s`, i, level(fmt.Sprintf(`{"$ref":"#/$defs/a%d"}`, i+1)))
	}), n, last)
}

// TestManyWaysToTheSameAreOne: a schema that refers to the next part twice, forty times over,
// takes as many steps as it has parts.
func TestManyWaysToTheSameAreOne(t *testing.T) {
	t.Parallel()
	twice := func(keyword string) func(string) string {
		return func(next string) string { return fmt.Sprintf(`{"%s":[%s,%s]}`, keyword, next, next) }
	}
	object := `{"a":1,"b":2}`
	nested := strings.Repeat(`{"a":`, 22) + "1" + strings.Repeat("}", 22)
	tree := `{"$defs":{"n":{"allOf":[{"properties":{"a":{"$ref":"#/$defs/n"}}},` +
		`{"properties":{"a":{"$ref":"#/$defs/n"}}}]}},"$ref":"#/$defs/n"}`
	for name, tt := range map[string]struct{ schema, value string }{
		"allOf":        {levels(40, twice("allOf"), `{"type":"object"}`), object},
		"allOf, wrong": {levels(40, twice("allOf"), `{"type":"string"}`), object},
		"anyOf":        {levels(40, twice("anyOf"), `{"type":"string"}`), object},
		"oneOf":        {levels(40, twice("oneOf"), `{"type":"string"}`), object},
		"not": {levels(40, func(next string) string { return `{"not":{"allOf":[` + next + `,{"not":` + next + `}]}}` },
			`{"type":"string"}`),
			object},
		"if": {levels(40, func(next string) string {
			return `{"if":` + next + `,"then":` + next + `,"else":` + next +
				`}`
		}, `{"type":"string"}`),
			object},
		"dependentSchemas": {levels(40, func(next string) string {
			return `{"dependentSchemas":{"a":` + next +
				`,"b":` + next + `}}`
		}, `{"type":"string"}`),
			object},
		"beside $ref": {levels(40, func(next string) string {
			return strings.TrimSuffix(next, "}") + `,"allOf":[` +
				next + `]}`
		}, `{"type":"string"}`),
			object},
		"unevaluated": {levels(40, func(next string) string {
			return `{"allOf":[` + next + `,` + next + `],"unevaluatedProperties":` + next + `}`
		},
			`{"properties":{"a":{}}}`), object},
		"properties beside properties": {tree, nested},
		"patternProperties": {strings.ReplaceAll(tree, `"properties":{"a"`, `"patternProperties":{"^a"`),
			nested},
		"$dynamicRef": {strings.NewReplacer(`"n":{`, `"n":{"$dynamicAnchor":"n",`, `{"$ref":"#/$defs/n"}`,
			`{"$dynamicRef":"#n"}`).
			Replace(tree),
			nested},
		"$recursiveRef": {`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,` +
			`"allOf":[{"properties":{"a":{"$recursiveRef":"#"}}},{"properties":{"a":{"$recursiveRef":"#"}}}]}`, nested},
	} {
		n, _, err := steps(t, tt.schema, tt.value)
		if err != nil || n > 5_000 {
			t.Errorf("%s: %d steps, %v; want at most 5,000", name, n, err)
		}
	}
}

// TestChecksEnd: what takes more steps than a check has ends with an error that says so.
func TestChecksEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ schema, value string }{
		"every item in every reference": {levels(3_000, func(next string) string { return next },
			`{"items":{"type":"string"}}`),
			"[" + listOf(3_000, func(int) string { return "[1]" }) + "]"},
		"a pattern and long texts": {`{"items":{"pattern":"(([a-z]{10}){10}x?){9}$"}}`, "[" +
			listOf(200, func(int) string { return `"` + strings.Repeat("abc", 100) + `"` }) + "]"},
		"names": {`{"anyOf":[` +
			listOf(2_000, func(i int) string { return fmt.Sprintf(`{"required":["a%d","b"]}`, i) }) + `]}`, "{" +
			listOf(3_000, func(i int) string { return fmt.Sprintf(`"x%d":1`, i) }) + "}"},
		"numbers": {`{"items":{"allOf":[` +
			listOf(200, func(i int) string { return fmt.Sprintf(`{"multipleOf":1e-%d}`, i+100) }) + `]}}`, "[" +
			listOf(2_000, func(i int) string { return fmt.Sprintf("%de300", i+1) }) + "]"},
		"too many values": {`{}`, "[" + strings.Repeat("1,", MaxChecking) + "1]"},
	} {
		if strings.HasPrefix(name, "every") {
			tt.schema = strings.Replace(tt.schema, `"$ref":"#/$defs/a0"`, `"items":{"$ref":"#/$defs/a0"}`, 1)
		}
		s, err := Compile([]byte(tt.schema))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		texts, err := s.Violations(t.Context(), []byte(tt.value))
		if !IsBound(err) || !strings.Contains(err.Error(), "500,000 steps") || texts != nil {
			t.Errorf("%s: %.200v, %v", name, texts, err)
		}
	}
	// As many values as somebody may really send are no problem.
	for name, tt := range map[string]struct{ schema, value string }{
		"uniqueItems": {`{"uniqueItems":true}`, "[" +
			listOf(30_000, func(i int) string { return fmt.Sprintf(`{"a":%d,"b":[1]}`, i) }) + "]"},
		"a table": {`{"items":{"type":"integer"}}`, "[" + strings.Repeat("1,", 199_999) + "1]"},
		"a text": {`{"properties":{"a":{"type":"string","maxLength":5000000}}}`, `{"a":"` +
			strings.Repeat("x", 4_000_000) + `"}`},
	} {
		if n, texts, err := steps(t, tt.schema, tt.value); err != nil || len(texts) > 0 {
			t.Errorf("%s: %d steps, %v, %v", name, n, texts, err)
		}
	}
}

// TestSchemasThatTakeTooLongToRead are refused.
func TestSchemasThatTakeTooLongToRead(t *testing.T) {
	t.Parallel()
	strs := func(n int) string {
		return `"properties":{` + listOf(n, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"string"}`, i) }) +
			`}`
	}
	for name, schema := range map[string]string{
		"enum":  `{"enum":[` + listOf(100_000, func(i int) string { return fmt.Sprint(i) }) + `]}`,
		"parts": `{` + strs(9_000) + `}`,
		"bytes": `{"description":"` + strings.Repeat("x", MaxBytes) + `"}`,
		"depth": strings.Repeat(`{"items":`, 500) + `{}` + strings.Repeat("}", 500),
		"a pattern of repeats": `{"pattern":"[a-z]{1000}[a-z]{1000}[a-z]{1000}[a-z]{1000}[a-z]{1000}[a-z]{1000}` +
			`[a-z]{1000}[a-z]{1000}[a-z]{1000}[a-z]{1000}[a-z]{1000}[a-z]{1000}"}`,
		"a pattern of classes": `{"pattern":"` + strings.Repeat(`\\pL`, 1_000) + `"}`,
		"a long pattern":       `{"pattern":"` + strings.Repeat(`x`, maxPattern+1) + `"}`,
		"many patterns": `{"patternProperties":{` +
			listOf(5_000, func(i int) string { return fmt.Sprintf(`"%d":{}`, i) }) + `}}`,
		"many unusable patterns": `{"allOf":[` +
			listOf(100, func(i int) string {
				return fmt.Sprintf(`{"pattern":"%d%s("}`, i, strings.Repeat(`\\pL`, 1_000))
			}) +
			`]}`,
		"references elsewhere": `{"x":{},"allOf":[` +
			listOf(200, func(i int) string { return fmt.Sprintf(`{"$ref":"#/x/y%d"}`, i) }) + `],` + strs(1_000) + `}`,
		"other names of a place": `{"allOf":[{` + strs(300) + `},` +
			listOf(60, func(i int) string { return `{"$ref":"#/allOf/` + strings.Repeat("0", i+2) + `"}` }) + `]}`,
		"other spellings": `{"allOf":[{` + strs(300) + `},` +
			listOf(60, func(i int) string {
				return `{"$ref":"holdfast:///schema#/allOf/` + strings.Repeat("0", i+2) +
					`"}`
			}) +
			`]}`,
		"ids": `{"allOf":[` +
			listOf(400, func(i int) string { return fmt.Sprintf(`{"$id":"http://a.example/%d"}`, i) }) + `]}`,
	} {
		if _, err := Compile([]byte(schema)); !IsBound(err) || len(err.Error()) > 200 {
			t.Errorf("%s: %.300v", name, err)
		}
		object := strings.Replace(schema, "{", `{"type":"object",`, 1)
		if m := OutputMistakes("x", json.RawMessage(object)); len(m) != 1 || !strings.Contains(m[0].Text, "at most") {
			t.Errorf("%s as the form of answers: %.300v", name, m)
		}
	}
}

// TestSchemasOfRealSize are read.
func TestSchemasOfRealSize(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"2,000 members": `{"properties":{` +
			listOf(2_000, func(i int) string {
				return fmt.Sprintf(`"p%d":{"type":"string","description":"what it is for"}`, i)
			}) +
			`}}`,
		"200 levels": strings.Repeat(`{"items":`, 200) + `{}` + strings.Repeat("}", 200),
		"an enum of places": `{"enum":[` +
			listOf(9_000, func(i int) string { return fmt.Sprintf(`"place %d"`, i) }) + `]}`,
		"definitions": `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{` +
			listOf(300, func(i int) string { return fmt.Sprintf(`"d%d":{"type":"string"}`, i) }) + `},"allOf":[` +
			listOf(300, func(i int) string { return fmt.Sprintf(`{"$ref":"#/definitions/d%d"}`, i) }) + `]}`,
		"$defs in an old one": `{"$schema":"http://json-schema.org/draft-07/schema#","$defs":{` +
			listOf(100, func(i int) string { return fmt.Sprintf(`"d%d":{"type":"string"}`, i) }) + `},"allOf":[` +
			listOf(100, func(i int) string { return fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i) }) + `]}`,
		"patterns": `{"allOf":[` +
			listOf(100, func(i int) string {
				return fmt.Sprintf(`{"pattern":"^[A-Za-z0-9._%%+-]{1,64}@[a-z]{%d}$"}`, i+
					1)
			}) +
			`]}`,
		"a draft's own": `{"properties":{"schema":{"$ref":"https://json-schema.org/draft/2020-12/schema"}}}`,
	} {
		if _, err := Compile([]byte(schema)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestACheckEndsWithItsContext.
func TestACheckEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s, err := Compile([]byte(`{"items":{"type":"integer"}}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Violations(ctx, []byte("["+strings.Repeat("1,", 20_000)+"1]")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestTextsAreBounded: what is wrong is said in a text that a person can read, however many
// alternatives are inside of one another.
func TestTextsAreBounded(t *testing.T) {
	t.Parallel()
	schema := levels(40, func(next string) string {
		return `{"anyOf":[` + next + `,{"allOf":[` + next + `],"required":["` + next[len(next)-5:len(next)-2] + `"]}]}`
	}, `{"required":["z"]}`)
	_, texts, err := steps(t, schema, `{}`)
	if all := strings.Join(texts, "; "); err != nil || len(all) > 3*maxAlternatives {
		t.Errorf("%d bytes, %v", len(all), err)
	}
	_, texts, _ = steps(t, `{"enum":[`+listOf(5_000, func(i int) string { return fmt.Sprint(i) })+`]}`, `"x"`)
	if len(texts) != 1 || !strings.HasSuffix(texts[0], ", 99, and 4,900 more") {
		t.Errorf("%.300v", texts)
	}
}

// TestLibraryAgrees: on small schemas the library's own check comes to the same verdict.
func TestLibraryAgrees(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	agreed := map[bool]int{}
	for range 10_000 {
		g := generator{r}
		schema, value := g.document(), g.value(3)
		s, err := Compile([]byte(schema))
		if err != nil {
			continue
		}
		decoded, _ := decode([]byte(value))
		problems, err := newCheck(t.Context(), s).run(s, decoded)
		if err != nil {
			t.Fatalf("%s on %s: %v", schema, value, err)
		}
		library := s.compiled.Validate(decoded)
		var invalid *jsonschema.ValidationError
		if (len(problems) == 0) != (library == nil) &&
			!(errors.As(library, &invalid) && strings.Contains(library.Error(), "reference cycle")) {
			t.Fatalf("%s on %s: %v, the library says %v", schema, value, problems, library)
		}
		agreed[library == nil]++
	}
	if agreed[true] < 1_000 || agreed[false] < 1_000 {
		t.Errorf("fits and does not fit: %v", agreed)
	}
}

// generator makes up schemas and values that have something to do with each other.
type generator struct{ *rand.Rand }

func (g generator) one(texts ...string) string { return texts[g.IntN(len(texts))] }

func (g generator) document() string {
	draft := g.one("", "", "", `"$schema":"http://json-schema.org/draft-07/schema#",`,
		`"$schema":"https://json-schema.org/draft/2019-09/schema",`)
	inner := strings.TrimPrefix(g.object(3), "{")
	if inner == "}" {
		inner = `"title":""}`
	}
	return `{` + draft + `"$defs":{"x":` + g.schema(2) + `,"y":` + g.schema(2) + `},` + inner
}

func (g generator) schema(depth int) string {
	if depth == 0 || g.IntN(8) == 0 {
		return g.one(`true`, `false`, `{}`, `{"type":"string"}`, `{"type":"integer"}`, `{"type":["object","array"]}`,
			`{"const":1}`, `{"required":["a"]}`)
	}
	return g.object(depth)
}

func (g generator) object(depth int) string {
	members := map[string]string{}
	sub := func() string { return g.schema(depth - 1) }
	list := func() string { return "[" + listOf(1+g.IntN(3), func(int) string { return sub() }) + "]" }
	named := func() string { return fmt.Sprintf(`{"%s":%s,"%s":%s}`, "a", sub(), "b", sub()) }
	number := func() string { return fmt.Sprint(g.IntN(4)) }
	for range 1 + g.IntN(3) {
		switch keyword := g.one("type", "enum", "const", "$ref", "allOf", "anyOf", "oneOf", "not", "if", "then",
			"else", "properties", "patternProperties", "additionalProperties", "propertyNames", "required",
			"dependentRequired", "dependentSchemas", "dependencies", "minProperties", "maxProperties", "items",
			"prefixItems", "additionalItems", "contains", "minContains", "maxContains", "uniqueItems", "minItems",
			"maxItems", "minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum",
			"exclusiveMaximum", "multipleOf", "unevaluatedProperties", "unevaluatedItems", "format"); keyword {
		case "type":
			members[keyword] = g.one(`"string"`, `"integer"`, `"number"`, `"object"`, `"array"`, `["null","boolean"]`,
				`["object","array"]`)
		case "enum":
			members[keyword] = "[" + g.value(1) + "," + g.value(2) + "]"
		case "const":
			members[keyword] = g.value(2)
		case "$ref":
			members[keyword] = g.one(`"#/$defs/x"`, `"#/$defs/y"`)
		case "allOf", "anyOf", "oneOf", "prefixItems":
			members[keyword] = list()
		case "properties", "dependentSchemas":
			members[keyword] = named()
		case "patternProperties":
			members[keyword] = `{"^a":` + sub() + `,"b$":` + sub() + `}`
		case "required":
			members[keyword] = g.one(`["a"]`, `["a","b"]`)
		case "dependentRequired":
			members[keyword] = `{"a":["b"]}`
		case "dependencies":
			members[keyword] = g.one(`{"a":["b"]}`, `{"b":`+sub()+`}`)
		case "items":
			members[keyword] = g.one(sub(), sub(), list())
		case "uniqueItems":
			members[keyword] = "true"
		case "pattern":
			members[keyword] = g.one(`"^a"`, `"b"`)
		case "format":
			members[keyword] = `"date"`
		case "multipleOf":
			members[keyword] = g.one("1", "2", "0.5")
		case "additionalProperties",
			"propertyNames",
			"additionalItems",
			"contains",
			"unevaluatedProperties",
			"unevaluatedItems",
			"not",
			"if",
			"then",
			"else":
			members[keyword] = sub()
		default:
			members[keyword] = number()
		}
	}
	return objectOf(members)
}

func (g generator) value(depth int) string {
	if depth > 0 {
		switch g.IntN(3) {
		case 0:
			return "[" + listOf(g.IntN(4), func(int) string { return g.value(depth - 1) }) + "]"
		case 1:
			members := map[string]string{}
			for range g.IntN(4) {
				members[g.one("a", "b", "ab", "c")] = g.value(depth - 1)
			}
			return objectOf(members)
		}
	}
	return g.one("null", "true", "0", "1", "1.0", "2", "1.5", "-1e2", `"a"`, `"b"`, `"ab"`, `"2020-01-01"`, `""`)
}

func objectOf(members map[string]string) string {
	names := slices.Sorted(maps.Keys(members))
	return "{" + listOf(len(names), func(i int) string { return `"` + names[i] + `":` + members[names[i]] }) + "}"
}
