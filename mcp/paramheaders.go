package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-agents/holdfast/mcp/internal/streamhttp"
)

// Arguments that a server wants in headers too, so that what stands before it can route a
// call without reading its body: the annotation x-mcp-header of the newer revisions.

// paramHeader says which argument goes into which header.
type paramHeader struct {
	path []string
	name string
}

// paramPrefix begins the names of such headers.
const paramPrefix = "Mcp-Param-"

// annotated is the part of a schema that matters here.
type annotated struct {
	Type       any                  `json:"type"`
	Header     json.RawMessage      `json:"x-mcp-header"`
	Properties map[string]annotated `json:"properties"`
}

// paramHeaders returns the annotations of a schema. A tool with a wrong one must not be
// used.
func paramHeaders(parameters json.RawMessage) ([]paramHeader, error) {
	var root annotated
	if err := json.Unmarshal(parameters, &root); err != nil {
		return nil, nil // a schema of a form that has no annotations
	}
	var found []paramHeader
	err := root.collect(nil, &found)
	slices.SortFunc(found, func(a, b paramHeader) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(found) && err == nil; i++ {
		if found[i].name == found[i-1].name {
			err = fmt.Errorf("two of its arguments go into the header %q (x-mcp-header)", found[i].name)
		}
	}
	return found, err
}

func (a *annotated) collect(path []string, found *[]paramHeader) error {
	for name, p := range a.Properties {
		at := append(path, name)
		if p.Header != nil {
			var header string
			if json.Unmarshal(p.Header, &header) != nil || !headerName.MatchString(header) {
				return errors.New("one of its arguments goes into a header without a proper name (x-mcp-header)")
			}
			if p.Type != "string" && p.Type != "integer" && p.Type != "boolean" {
				return fmt.Errorf("its argument %s goes into a header and is no string, integer "+
					"or boolean (x-mcp-header)", strings.Join(at, "."))
			}
			*found = append(*found, paramHeader{path: slices.Clone(at),
				name: http.CanonicalHeaderKey(paramPrefix + header)})
		}
		if err := p.collect(at, found); err != nil {
			return err
		}
	}
	return nil
}

// set sets the headers for a call's arguments.
func setParamHeaders(h http.Header, headers []paramHeader, arguments json.RawMessage) {
	for _, p := range headers {
		value := arguments
		for _, name := range p.path {
			var object map[string]json.RawMessage
			if json.Unmarshal(value, &object) != nil {
				value = nil
				break
			}
			value = object[name]
		}
		if text, ok := inHeader(value); ok {
			h.Set(p.name, streamhttp.Encode(text))
		}
	}
}

// inHeader returns a value as a header has it; false if it is not to be there.
func inHeader(value json.RawMessage) (string, bool) {
	var v any
	if len(value) == 0 || json.Unmarshal(value, &v) != nil {
		return "", false
	}
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		const safe = 1<<53 - 1
		if n := int64(v); float64(n) == v && n >= -safe && n <= safe {
			return strconv.FormatInt(n, 10), true
		}
	}
	return "", false
}
