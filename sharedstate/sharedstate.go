// Package sharedstate describes what an agent does with the document that the application and the
// agent share: the shared state of AG-UI. It knows no runs and no threads.
package sharedstate

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-agents/holdfast/internal/schema"
)

// Options say what an agent does with the shared state. The zero value does nothing.
type Options struct {
	// Schema is the JSON Schema that the document must fit after each change: by a page, a
	// tool or a person. A change that does not fit is refused, with everything that is wrong with
	// it. Without it any JSON will do. See [Of].
	Schema json.RawMessage
	// Conflict is what happens if a page has changed a place that has changed here, too, since the
	// page has had it: "refuse" (default) refuses the request, "page" takes the page's value, "agent"
	// the one here. A request with the policy chat is never refused: for it "refuse" is "page".
	Conflict string
	// Show is what of the document the model is shown with each request: "all", "paths" for
	// the values at Paths only, or "none" (default).
	Show string
	// Paths are JSON Pointers to what is shown, such as "/recipe/title". A place that the
	// document does not have is left out.
	Paths []string
	// At is where in the prompt it stands: "end" (default), behind the history, where it cuts
	// no provider's cache of the prompt. There is no other place yet.
	At string
	// MaxBytes bounds what is shown, as JSON on one line; 0 means 16 KiB. Of more the model is
	// only told how many bytes there are.
	MaxBytes int
	// Predict says which arguments of which tools are seen in the document while the model
	// writes them.
	Predict []Prediction
}

// The values of Conflict.
const (
	ConflictRefuse = "refuse"
	ConflictPage   = "page"
	ConflictAgent  = "agent"
)

// The values of Show.
const (
	showAll   = "all"
	showPaths = "paths"
	showNone  = "none"
)

// Validate says what is wrong with them.
func (s *Options) Validate() error {
	switch s.Show {
	case "", showAll, showPaths, showNone:
	default:
		return fmt.Errorf("show cannot be %q; it is all, paths or none", s.Show)
	}
	switch s.Conflict {
	case "", ConflictRefuse, ConflictPage, ConflictAgent:
	default:
		return fmt.Errorf("conflict cannot be %q; it is refuse, page or agent", s.Conflict)
	}
	switch listed := s.Show == showPaths; {
	case listed && len(s.Paths) == 0:
		return errors.New("show: paths needs paths, the JSON Pointers to what is shown")
	case !listed && len(s.Paths) > 0:
		return errors.New("paths are only for show: paths")
	case s.At != "" && s.At != "end":
		return fmt.Errorf("at cannot be %q; it is end", s.At)
	case s.MaxBytes < 0:
		return errors.New("maxBytes must not be negative")
	}
	for _, p := range s.Paths {
		if !isPointer(p) {
			return fmt.Errorf("the path %q is no JSON Pointer; write one like /recipe/title", p)
		}
	}
	if err := validatePredictions(s.Predict); err != nil {
		return err
	}
	if len(s.Schema) > 0 {
		if _, err := schema.Compile(s.Schema); err != nil {
			return fmt.Errorf("schema: %w", err)
		}
	}
	return nil
}

// isPointer reports whether a text is a JSON Pointer.
func isPointer(text string) bool {
	if text != "" && text[0] != '/' {
		return false
	}
	for at := range len(text) {
		if text[at] == '~' && (at+1 == len(text) || text[at+1] != '0' && text[at+1] != '1') {
			return false
		}
	}
	return true
}
