package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/strictjson"
)

// Reading what a server offers, which may be anything: one tool after the other, so that what
// is not used takes no memory, and in bounds.

// listing is a list of tools as it was read.
type listing struct {
	read    bool // false before the first one was read
	tools   []holdfast.Tool
	refused []Refused
	more    int // that are refused and not listed
	cut     bool
	leftOut []string
	// forApps are the tools that the server's interfaces may call.
	forApps []*Tool
}

// maxRefused bounds the list of what is refused.
const maxRefused = 100

// refuse notes that a tool is not used.
func (l *listing) refuse(name string, why error) {
	if len(l.refused) == maxRefused {
		l.more++
		return
	}
	l.refused = append(l.refused, Refused{Name: shorten(name, 200), Why: why.Error()})
}

// Refused is a tool of a server that is not used.
type Refused struct {
	// Name is the server's name for it.
	Name string `json:"name"`
	// Why says what is wrong with it.
	Why string `json:"why"`
}

// offered is a tool as a server offers it.
type offered struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations json.RawMessage `json:"annotations"`
	Meta        json.RawMessage `json:"_meta"`
	Execution   struct {
		TaskSupport string `json:"taskSupport"`
	} `json:"execution"`
}

const (
	// maxToolBytes bounds a tool's description with the schema of its arguments: models get
	// all of it with every request. maxDescribed bounds those of all tools of a server.
	maxToolBytes = 128 << 10
	maxDescribed = 4 << 20
	// listedPerUsed is how many tools a list may have for each that may be used of it, since
	// the options may leave out the most.
	listedPerUsed = 10
)

// reading is a list that is being read.
type reading struct {
	o         *Options
	listing   *listing
	modern    bool
	seen      map[string]bool // the names of those that are used
	used      []offered
	listed    int // how many tools the list had until here
	described int // bytes of those that are used
}

// page reads a page of the list, and returns the cursor of the next one.
func (r *reading) page(raw []byte) (next string, err error) {
	if !json.Valid(raw) { // also what is nested too deep
		return "", errors.New("it is not valid JSON, or nested too deep")
	}
	for name, value := range strictjson.Members(raw) {
		switch string(name) {
		case "nextCursor":
			if err := json.Unmarshal(value, &next); err != nil {
				return "", fmt.Errorf("nextCursor: %w", err)
			}
		case "tools":
			if value[0] != '[' && value[0] != 'n' {
				return "", errors.New("tools is no list")
			}
			for tool := range strictjson.Elements(value) {
				if r.listed == listedPerUsed*r.o.MaxTools {
					r.listing.cut = true
					return "", nil
				}
				r.listed++
				r.offer(tool)
			}
		}
	}
	return next, nil
}

// offer takes a tool, or notes why it is not used.
func (r *reading) offer(raw []byte) {
	var o offered
	if err := json.Unmarshal(raw, &o); err != nil {
		r.listing.refuse(o.Name, fmt.Errorf("its description cannot be read: %w", err))
		return
	}
	if !r.o.uses(o.Name) {
		if len(r.listing.leftOut) < r.o.MaxTools {
			r.listing.leftOut = append(r.listing.leftOut, shorten(o.Name, 200))
		}
		return
	}
	size := o.size()
	err := o.check(r.modern)
	switch {
	case err != nil:
	case strictjson.Depth(string(raw)) > strictjson.MaxDepth:
		err = fmt.Errorf("what describes it is nested more than %d deep", strictjson.MaxDepth)
	case r.seen[o.Name]:
		err = errors.New("the server has another tool of this name")
	case len(r.used) == r.o.MaxTools:
		err = fmt.Errorf("the server has more than %d tools", r.o.MaxTools)
	case r.described+size > maxDescribed:
		err = fmt.Errorf("what describes the server's tools has more than %d bytes", maxDescribed)
	}
	if err != nil {
		r.listing.refuse(o.Name, err)
		return
	}
	r.seen[o.Name] = true
	r.described += size
	r.used = append(r.used, o)
}

// size is how much describes the tool.
func (o *offered) size() int {
	return len(o.Title) + len(o.Description) + len(o.InputSchema) + len(o.Annotations) + len(o.Meta)
}

// toolName is what the protocol allows as a tool's name.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,128}$`)

// check reports what keeps a tool from being used, apart from its schema.
func (o *offered) check(modern bool) error {
	switch {
	case !toolName.MatchString(o.Name):
		return errors.New("its name is not made of 1 to 128 letters, digits, underscores, hyphens and dots")
	case o.size() > maxToolBytes:
		return fmt.Errorf("what describes it has more than %d bytes", maxToolBytes)
	case !modern && o.Execution.TaskSupport == "required":
		return errors.New("it runs only as a task of the revision 2025-11-25, which is not supported")
	}
	return nil
}
