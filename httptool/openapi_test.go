package httptool_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/httptool"
)

const shop = `
openapi: 3.0.3
info: {title: Shop, version: 1}
servers:
  - url: SERVER/{version}/
    variables: {version: {default: v1, enum: [v1, v2]}}
paths:
  /orders/{order-id}:
    parameters:
      - name: order-id
        in: path
        required: true
        description: "the order's number"
        schema: {type: integer, minimum: 0, exclusiveMinimum: true}
      - {name: fields, in: query, schema: {type: string}}
    get:
      operationId: order.get
      summary: Reads an order.
      description: All of it.
      parameters:
        - $ref: "#/components/parameters/Fields"
        - {name: X-Region, in: header, schema: {type: string}}
        - {name: Authorization, in: header, required: true, schema: {type: string}}
        - {name: session, in: cookie, schema: {type: string}}
        - {name: "filter[a]", in: query, schema: {type: array, items: {type: string}}, explode: false}
        - {name: deep, in: query, style: deepObject, schema: {type: object}}
        - {name: j, in: query, content: {application/json: {schema: {type: object}}}}
        - {name: p, in: query, style: pipeDelimited, schema: {type: array}}
  /orders:
    post:
      requestBody:
        required: true
        content:
          application/vnd.shop+json:
            schema: {$ref: "#/components/schemas/Order"}
    get: {operationId: list, requestBody: {content: {text/plain: {}}}}
  /upload:
    post: {operationId: upload, requestBody: {required: true, content: {multipart/form-data: {}}}}
  /other:
    get: {operationId: other, servers: [{url: "https://other.example"}]}
  /{x}:
    get: {operationId: missing}
  /y.evil.example/: {}
  .evil.example/:
    get: {operationId: evil}
  /circle:
    get: {operationId: circle, parameters: [{$ref: "#/components/parameters/A"}]}
  /far:
    get: {operationId: far, parameters: [{name: a, in: query, schema: {$ref: "other.yaml#/A"}}]}
  /matrix/{m}:
    get: {operationId: matrix, parameters: [{name: m, in: path, required: true, style: matrix, schema: {}}]}
  /object:
    get: {operationId: object, parameters: [{name: o, in: query, schema: {type: object}}]}
  /env/${SECRET}:
    get: {operationId: env}
components:
  parameters:
    Fields: {name: fields, in: query, schema: {type: array, items: {type: string}}}
    A: {$ref: "#/components/parameters/B"}
    B: {$ref: "#/components/parameters/A"}
  schemas:
    Order:
      type: object
      required: [id, item]
      properties:
        id: {type: integer, readOnly: true}
        item: {type: string, nullable: true, enum: [a, b], example: a, xml: {name: i}}
        price: {type: number, maximum: 9007199254740993, exclusiveMaximum: true}
        parts: {type: array, items: {$ref: "#/components/schemas/Order"}}
        $ref: {type: string}
`

func importShop(t *testing.T, s *service, o httptool.OpenAPIOptions) ([]*httptool.Tool, error) {
	t.Helper()
	o.Allow = []string{"127.0.0.1"}
	tools, err := httptool.FromOpenAPI([]byte(strings.Replace(shop, "SERVER", s.URL, 1)), o)
	for _, tool := range tools {
		t.Cleanup(tool.Close)
	}
	return tools, err
}

// TestOpenAPI: an operation becomes a tool with its parameters, and what is sent is what
// the document says.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	var header http.Header
	s := newService(t, func(_ http.ResponseWriter, r *http.Request) { header = r.Header })
	tools, err := importShop(t, s, httptool.OpenAPIOptions{
		Prefix:    "shop_",
		Headers:   map[string]string{"Authorization": "Bearer ${TOKEN}"},
		Getenv:    func(string) string { return "t0ken-of-us" },
		Variables: map[string]string{"version": "v2"},
		Operations: []httptool.Operation{
			{Operation: "order.get"},
			{Operation: "post /orders", Description: "Orders.", InDoubt: "ask"},
			{Operation: "list", Name: "all", Effect: "idempotent"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		name, description string
		effect            holdfast.Effect
		parameters        string
	}{
		{"shop_order_get", "Reads an order.\nAll of it.", "pure", `{"additionalProperties":false,"properties":{` +
			`"X-Region":{"type":"string"},"deep":{"type":"object"},"fields":{"items":{"type":"string"},` +
			`"type":"array"},"filter_a_":{"items":{"type":"string"},"type":"array"},"j":{"type":"object"},` +
			`"order-id":{"description":"the order's ` +
			`number","exclusiveMinimum":0,"type":"integer"},"p":{"type":"array"}},` +
			`"required":["order-id"],"type":"object"}`},
		{"shop_POST_orders", "Orders.", "once", `{"additionalProperties":false,` +
			`"properties":{"body":{"properties":{"$ref":{"type":"string"},"item":{"enum":["a","b",null],` +
			`"type":["string","null"]},` +
			`"parts":{"items":{"description":"as Order ` +
			`above"},"type":"array"},"price":{"exclusiveMaximum":9007199254740993,"type":"number"}},` +
			`"required":["item"],"type":"object"}},"required":["body"],"type":"object"}`},
		{"shop_all", "GET /orders", "idempotent", `{"additionalProperties":false,"properties":{},"type":"object"}`},
	} {
		spec := tools[i].Spec()
		if spec.Name != want.name || spec.Description != want.description || spec.Effect != want.effect ||
			string(spec.Parameters) != want.parameters {
			t.Errorf("%s, %q, %s\n%s, want\n%s", spec.Name, spec.Description, spec.Effect, spec.Parameters,
				want.parameters)
		}
	}
	for _, c := range []struct {
		tool            int
		arguments, want string
	}{
		{0, `{"order-id":7,"fields":["a","b ` +
			`c"],"X-Region":"eu","filter_a_":["x","y,z"],"deep":{"k":1,"l":[true,"&"]},"j":{"a":[1.0]},"p":["1","2"]}`,
			`GET /v2/orders/7?fields=a&fields=b%20c&filter%5Ba%5D=x,` +
				`y%2Cz&deep%5Bk%5D=1&deep%5Bl%5D=true&deep%5Bl%5D=%26&j=%7B%22a%22%3A%5B1.0%5D%7D&p=1%7C2`},
		{0, `{"order-id":7}`, `GET /v2/orders/7`},
		{1, `{"body":{"item":null,"price":1.10}}`, `POST /v2/orders {"item":null,"price":1.10}`},
		{2, `{}`, `GET /v2/orders`},
	} {
		if _, err := call(t, tools[c.tool], c.arguments); err != nil {
			t.Error(err)
			continue
		}
		seen := s.seen()
		if got := seen[len(seen)-1]; got != c.want {
			t.Errorf("got\n%s, want\n%s", got, c.want)
		}
		if header.Get("Authorization") != "Bearer t0ken-of-us" ||
			c.tool == 1 && (header.Get("Content-Type") != "application/vnd.shop+json" ||
				header.Get("Idempotency-Key") != "key1") {
			t.Error(header)
		}
	}
	if _, err := call(t, tools[1], `{"body":{"item":"c"}}`); !errors.Is(err, holdfast.ErrArguments) {
		t.Error(err)
	}
}

// TestOpenAPI31: schemas are JSON Schema, and JSON is read as it is written.
func TestOpenAPI31(t *testing.T) {
	t.Parallel()
	const doc = `{"openapi":"3.1.0","servers":[{"url":"https://a.example"}],
		"paths":{"/a":{"get":{"operationId":"a","parameters":[
			{"name":"x","in":"query","schema":{"$ref":"#/components/schemas/X","description":"an x"}},
			{"name":"x","in":"header","schema":true},
			{"name":"ü","in":"query","schema":{"type":["array","null"],"prefixItems":[{"const":1.50}]}}
		]}}},
		"components":{"schemas":{
			"X":{"type":["string","null"],"if":{"minLength":1},"then":{"$ref":"#/components/schemas/Y~1Z"},
				"$id":"http://x","nullable":true},
			"Y/Z":{"anyOf":[{"const":"\ud83d\ude00"},false]}
		}}}`
	tools, err := httptool.FromOpenAPI([]byte(doc),
		httptool.OpenAPIOptions{Operations: []httptool.Operation{{Operation: "GET /a"}}})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"additionalProperties":false,"properties":{"_":{"prefixItems":[{"const":1.50}],` +
		`"type":["array","null"]},` +
		`"x":{"description":"an ` +
		`x","if":{"minLength":1},"then":{"anyOf":[{"const":"😀"},false]},"type":["string","null"]},` +
		`"x_header":{}},"type":"object"}`
	if got := string(tools[0].Spec().Parameters); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

// TestOpenAPIMistakes: an error begins with the place in the options, and names the one in
// the document.
func TestOpenAPIMistakes(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	pick := func(names ...string) (all []httptool.Operation) {
		for _, n := range names {
			all = append(all, httptool.Operation{Operation: n})
		}
		return all
	}
	for _, c := range []struct {
		o    httptool.OpenAPIOptions
		want string
	}{
		{httptool.OpenAPIOptions{}, "operations: list those that become tools; the document has evil, circle, env, " +
			"far, matrix, object, list, POST /orders, order.get, other, upload, missing"},
		{httptool.OpenAPIOptions{Operations: pick("list", "nope")},
			"operations[1] (nope): the document has no such operation; it has evil, circle, "},
		{httptool.OpenAPIOptions{Operations: pick("list", "GET /orders")},
			"operations[1] (GET /orders): name: list is already the tool of GET /orders"},
		{httptool.OpenAPIOptions{Operations: []httptool.Operation{{Operation: "list", Effect: "x"}}},
			"operations[0] (list): effect: "},
		{httptool.OpenAPIOptions{Operations: pick("upload")},
			"operations[0] (upload): paths./upload.post.requestBody.content: its body must be JSON, " +
				"not multipart/form-data"},
		{httptool.OpenAPIOptions{Operations: pick("list", "other")},
			"operations[1] (other): GET /other goes to https://other.example, "},
		{httptool.OpenAPIOptions{Operations: pick("missing")},
			"operations[0] (missing): paths./{x}.get: its path has a name in braces"},
		{httptool.OpenAPIOptions{Operations: pick("evil"), Server: "https://a.example"},
			"operations[0] (evil): paths..evil.example/.get: its path must begin with a slash"},
		{httptool.OpenAPIOptions{Operations: pick("env")},
			"operations[0] (env): paths./env/${SECRET}.get: its path has a name in braces"},
		{httptool.OpenAPIOptions{Operations: pick("circle")},
			"operations[0] (circle): paths./circle.get.parameters[0]: its $ref leads in a circle"},
		{httptool.OpenAPIOptions{Operations: pick("far")},
			`operations[0] (far): paths./far.get.parameters[0].schema: $ref "other.yaml#/A": only references within`},
		{httptool.OpenAPIOptions{Operations: pick("matrix")},
			"operations[0] (matrix): paths./matrix/{m}.get.parameters[0]: a parameter of this type cannot be " +
				"written in the style matrix"},
		{httptool.OpenAPIOptions{Operations: pick("object")},
			"operations[0] (object): paths./object.get.parameters[0]: a parameter of this type cannot be " +
				"written in the style form"},
		{httptool.OpenAPIOptions{Operations: pick("list"), Variables: map[string]string{"version": "v3"}},
			`operations[0] (list): servers[0].variables.version: "v3" is not one`},
		{httptool.OpenAPIOptions{Operations: pick("list"), Server: "/v1"},
			"operations[0] (list): paths./orders.get: the URL: it must be absolute"},
		{httptool.OpenAPIOptions{Operations: pick("list"), Headers: map[string]string{"X": "{a}"}},
			"operations[0] (list): headers: X: these headers have no arguments"},
		{httptool.OpenAPIOptions{Operations: pick("list"), Headers: map[string]string{"X": "${UNSET_X}"}},
			"operations[0] (list): headers: X: the environment variable UNSET_X"},
		{httptool.OpenAPIOptions{Operations: pick("list"), Proxy: "x"}, "operations[0] (list): proxy: "},
	} {
		if _, err := importShop(t, s, c.o); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %s…", err, c.want)
		}
	}
	for doc, want := range map[string]string{
		"": "openapi: ", "[]": "openapi: ", "openapi: 4.0.0": "openapi: ",
		`{"swagger":"2.0"}`: "the document is Swagger 2.0", "a: [": "the document cannot be read: ",
		"openapi: 3.1":                   "operations: ",
		"openapi: 3.1.0\n<<: {a: 1}":     "the document cannot be read: line 2, column 1: ",
		"openapi: 3.1.0\na: &a [*a, *a]": "the document cannot be read: ",
		"a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
			"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n" +
			"f: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f]": "the document cannot be read: ",
	} {
		if _, err := httptool.FromOpenAPI([]byte(doc), httptool.OpenAPIOptions{}); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s…", doc, err, want)
		}
	}
}

// TestSchemasThatGrow: a schema whose references multiply is refused, not expanded.
func TestSchemasThatGrow(t *testing.T) {
	t.Parallel()
	schemas := map[string]any{}
	for _, c := range "abcdefghijklmnopqrstuvwxy" {
		ref := map[string]any{"$ref": "#/components/schemas/" + string(c+1)}
		schemas[string(c)] = map[string]any{"allOf": []any{ref, ref, ref}}
	}
	schemas["z"] = map[string]any{"type": "string"}
	doc, err := json.Marshal(map[string]any{
		"openapi":    "3.1.0",
		"servers":    []any{map[string]any{"url": "https://a.example"}},
		"components": map[string]any{"schemas": schemas},
		"paths": map[string]any{
			"/a": map[string]any{
				"get": map[string]any{
					"parameters": []any{
						map[string]any{
							"name":   "q",
							"in":     "query",
							"schema": map[string]any{"$ref": "#/components/schemas/a"},
						},
					},
				},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := httptool.FromOpenAPI(doc,
		httptool.OpenAPIOptions{Operations: []httptool.Operation{{Operation: "GET /a"}}}); err == nil ||
		!strings.Contains(err.Error(), "more than 2000 others") {
		t.Error(err)
	}
}

// FuzzOpenAPI: no document makes the reader panic, and what becomes a tool has a name and a
// schema that every provider takes, and goes to the server that was set.
func FuzzOpenAPI(f *testing.F) {
	f.Add([]byte(shop), "order.get")
	f.Add([]byte(`{"openapi":"3.1.0","paths":{"/a/{b}":{"get":{"parameters":[{"name":"b",`+
		`"in":"path","schema":{}}]}}}}`), "GET /a/{b}")
	f.Add([]byte(`{"openapi":"3.1.0","paths":{"@evil.example/":{"get":{}}}}`), "GET @evil.example/")
	f.Fuzz(func(t *testing.T, doc []byte, name string) {
		tools, err := httptool.FromOpenAPI(doc, httptool.OpenAPIOptions{
			Operations: []httptool.Operation{{Operation: name}},
			Server:     "https://a.example",
			Getenv:     func(string) string { return "secret" },
			RoundTripper: func(http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					if r.URL.Host != "a.example" || strings.Contains(r.URL.String(), "secret") {
						t.Errorf("sent to %s", r.URL)
					}
					return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: r}, nil
				})
			},
		})
		if err != nil {
			return
		}
		spec := tools[0].Spec()
		if spec.Name == "" || len(spec.Name) > 64 || strings.ContainsAny(spec.Name, " .{}/") ||
			!json.Valid(spec.Parameters) {
			t.Errorf("%q, %s", spec.Name, spec.Parameters)
		}
		_, _ = call(t, tools[0], `{}`)
	})
}

// TestOpenAPIThatWantsMore: what a document cannot have the model decide, and what it cannot
// put into every prompt.
func TestOpenAPIThatWantsMore(t *testing.T) {
	t.Parallel()
	doc := func(parameters string) []byte {
		return []byte(`{"openapi":"3.1.0","servers":[{"url":"https://a.example"}],` +
			`"paths":{"/a":{"post":{"operationId":"a","parameters":[` +
			parameters +
			`]}}}}`)
	}
	one := httptool.OpenAPIOptions{Operations: []httptool.Operation{{Operation: "a"}}}
	const noArguments = "operations[0] (a): paths./a.post.parameters[0]: it cannot have arguments: "
	for parameters, want := range map[string]string{
		`{"name":"X-HTTP-Method-Override","in":"header","schema":{}}`: noArguments,
		`{"name":"x-original-url","in":"header","schema":{}}`:         noArguments,
		`{"name":"q","in":"query","schema":{"enum":["` + strings.Repeat("x", 300<<10) +
			`"]}}`: "operations[0] (a): paths./a.post: the schema of its arguments has",
	} {
		if _, err := httptool.FromOpenAPI(doc(parameters), one); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60s: %.200v", parameters, err)
		}
	}
	tools, err := httptool.FromOpenAPI(doc(`{"name":"X-Idempotency-Key","in":"header","required":true,"schema":{}}`),
		one)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(tools[0].Spec().Parameters); strings.Contains(got, "dempotency") {
		t.Error(got)
	}
	s := newService(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Idempotency-Key") != "key1" {
			t.Error(r.Header)
		}
	})
	keyed := one
	keyed.Server, keyed.Headers, keyed.Allow = s.URL, map[string]string{
		"X-Idempotency-Key": "{call.key}",
	}, []string{
		"127.0.0.1",
	}
	if tools, err = httptool.FromOpenAPI(doc(""), keyed); err != nil {
		t.Fatal(err)
	}
	defer tools[0].Close()
	if _, err := call(t, tools[0], ""); err != nil || len(s.seen()) != 1 {
		t.Error(err)
	}
}
