package sharedstate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Prediction says that an argument of a tool's call predicts a place of the document: while the model writes the
// call, watchers see the value there, as far as it has come. Nothing of that is stored as the state. When the call
// has ended, in whichever way, or its run has, watchers have the document that is stored: so the tool itself
// changes the state, with holdfast.UpdateState.
type Prediction struct {
	// Tool is the name of the tool.
	Tool string
	// Argument is the name of a member of its arguments.
	Argument string
	// Path is a JSON Pointer to the place, a member of an object, like /document. While the document has
	// no such object, nothing is predicted. A thread without a document has one for places at the top.
	Path string
}

// validate says what is wrong with it.
func (p *Prediction) validate() error {
	switch {
	case p.Tool == "" || p.Argument == "":
		return errors.New("each of predict needs a tool and an argument")
	case p.Path == "" || !isPointer(p.Path):
		return fmt.Errorf("the path %q of predict is no JSON Pointer to a member; write one like /document", p.Path)
	}
	for name := range strings.SplitSeq(p.Path[1:], "/") {
		if slices.Contains([]string{"__proto__", "constructor", "prototype"}, name) {
			return fmt.Errorf("the path %q of predict has a name that clients refuse: %s", p.Path, name)
		}
	}
	return nil
}

// validatePredictions says what is wrong with what is predicted.
func validatePredictions(all []Prediction) error {
	for i := range all {
		if err := all[i].validate(); err != nil {
			return err
		}
		for _, other := range all[:i] {
			a, b := all[i].Path+"/", other.Path+"/"
			if other.Tool == all[i].Tool && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) {
				return fmt.Errorf("predict has the paths %s and %s for the tool %s; neither may hold the other",
					other.Path, all[i].Path, other.Tool)
			}
		}
	}
	return nil
}
