package http

// The OpenAPI document: made from the table of routes, the table of error codes and the
// schemas in components.json.

import (
	_ "embed" // for the schemas
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
)

// componentsJSON holds the schemas and the parameters, as OpenAPI's components object.
// The schema of the error codes is made from the status table.
//
//go:embed components.json
var componentsJSON []byte

// object is a JSON object of the document.
type object = map[string]any

// openAPI makes the OpenAPI 3.1 document of the routes. With keys, the routes that are
// not open require one.
func openAPI(routes []route, keys bool, version string) []byte {
	if version == "" {
		version = "development"
	}
	components := object{}
	if err := json.Unmarshal(componentsJSON, &components); err != nil {
		// The file is part of the program, and a test reads it.
		panic(fmt.Sprintf("http: read components.json: %v", err))
	}
	components["schemas"].(object)["ErrorCode"] = errorCodes()
	if keys {
		components["securitySchemes"] = object{"key": object{
			"type":   "http",
			"scheme": "bearer",
			"description": "An API key that this deployment has issued, or a JWT of the identity " +
				"provider that it trusts.",
		}}
	}
	paths := object{}
	for _, r := range routes {
		path, _ := paths[documented(r.path)].(object)
		if path == nil {
			path = object{}
			paths[documented(r.path)] = path
		}
		path[strings.ToLower(r.method)] = r.operation(keys)
	}
	b, err := json.Marshal(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Holdfast", "version": version,
			"description": "A durable agent server that speaks AG-UI 1.0 over Server-Sent Events.",
		},
		"paths": paths, "components": components,
	})
	if err != nil {
		panic(fmt.Sprintf("http: write the OpenAPI document: %v", err)) // nothing in it can fail
	}
	return b
}

// documented returns a router's pattern as OpenAPI writes it, which has no wildcard
// for the rest of a path.
func documented(pattern string) string { return strings.Replace(pattern, "*", "{path}", 1) }

func ref(kind, name string) object { return object{"$ref": "#/components/" + kind + "/" + name} }

func (r *route) operation(keys bool) object {
	op := object{"operationId": r.id, "summary": r.summary, "responses": r.responses(keys)}
	var params []any
	for _, part := range strings.Split(documented(r.path), "/") {
		if name, isParam := strings.CutPrefix(part, "{"); isParam {
			params = append(params, ref("parameters", strings.TrimSuffix(name, "}")))
		}
	}
	for _, name := range r.params {
		params = append(params, ref("parameters", name))
	}
	if readsThreads(r) {
		params = append(params, ref("parameters", "HoldfastUser"))
	}
	if params != nil {
		op["parameters"] = params
	}
	if r.body != "" {
		content := object{}
		for _, kind := range append(r.bodyKinds, typeJSON)[:max(1, len(r.bodyKinds))] {
			content[kind] = object{"schema": ref("schemas", r.body)}
		}
		op["requestBody"] = object{
			"required": !r.bodyOptional,
			"content":  content,
		}
	}
	if keys && !r.open {
		op["security"] = []any{object{"key": []string{}}}
	}
	return op
}

func (r *route) responses(keys bool) object {
	out := object{}
	for _, a := range r.answers {
		response, _ := out[strconv.Itoa(a.code)].(object)
		if response == nil {
			response = object{"description": a.text}
			out[strconv.Itoa(a.code)] = response
		} else {
			response["description"] = response["description"].(string) + " " + a.text
		}
		if a.kind == "" {
			continue
		}
		content, _ := response["content"].(object)
		if content == nil {
			content = object{}
			response["content"] = content
		}
		schema := object{"type": "string"}
		if a.schema != "" {
			schema = ref("schemas", a.schema)
		}
		content[a.kind] = object{"schema": schema}
		if a.kind == typeSSE || a.schema == "ThreadInfo" && a.code != http.StatusCreated {
			response["headers"] = object{headerOwner: ref("headers", "Owner")}
		}
	}
	for code, names := range r.errorsByStatus(keys) {
		out[strconv.Itoa(code)] = errorResponse(strings.Join(names, ", "))
	}
	out["default"] = errorResponse("Any other error.")
	return out
}

func errorResponse(text string) object {
	return object{"description": text, "content": object{typeJSON: object{"schema": ref("schemas", "Error")}}}
}

// errorsByStatus groups the route's error codes, including those that every route has.
func (r *route) errorsByStatus(keys bool) map[int][]string {
	known := slices.Clone(r.errors)
	switch {
	case !keys:
		known = append(known, codes.Forbidden, codes.ForbiddenHost, codes.ForbiddenOrigin)
	case !r.open:
		known = append(known, codes.AuthUnavailable, codes.Forbidden, codes.ForbiddenHost, codes.Unauthenticated)
	default:
		known = append(known, codes.ForbiddenHost)
	}
	if r.method == http.MethodPost {
		known = append(known, codes.UnsupportedMediaType)
	}
	if r.body != "" {
		known = append(known, codes.BodyTimeout, codes.TooManyBodies)
	} else if r.method != http.MethodPost {
		known = append(known, codes.InvalidInput) // a body that it should not have
	}
	slices.Sort(known)
	known = slices.Compact(known)
	out := map[int][]string{}
	for _, c := range known {
		out[exchange.Statuses[c]] = append(out[exchange.Statuses[c]], c)
	}
	return out
}

// errorCodes returns the schema of the codes, with the status of each.
func errorCodes() object {
	known := slices.Sorted(maps.Keys(exchange.Statuses))
	var text strings.Builder
	text.WriteString("Stable and machine-readable. Extensions may answer with codes of their own.")
	for _, c := range known {
		fmt.Fprintf(&text, "\n* `%s`: %d %s", c, exchange.Statuses[c], http.StatusText(exchange.Statuses[c]))
	}
	fmt.Fprintf(&text, "\n* `%s` and any other: 500 %s", codes.Internal,
		http.StatusText(http.StatusInternalServerError))
	return object{"type": "string", "description": text.String(), "examples": append(known, codes.Internal)}
}
