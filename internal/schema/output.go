package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Mistake is something that is wrong with a schema.
type Mistake struct {
	// Path leads to the place: the names of members, and the places in lists.
	Path []string
	// Text says what is wrong there.
	Text string
}

// String returns the text with the place, for readers who have no lines.
func (m Mistake) String() string {
	if len(m.Path) == 0 {
		return m.Text
	}
	return pointer(m.Path) + ": " + m.Text
}

// outputNames match the names that providers take.
var outputNames = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// OutputMistakes returns what is wrong with the form of an agent's answers: with its name,
// and with its schema. Providers take only schemas of objects.
func OutputMistakes(name string, raw json.RawMessage) []Mistake {
	if !outputNames.MatchString(name) {
		return []Mistake{{Text: fmt.Sprintf("the name %s must be up to 64 letters, digits, _ and -", quote(name))}}
	}
	if err := sizeBounded(raw); err != nil {
		return []Mistake{{Text: "the schema cannot be read: " + err.Error()}}
	}
	doc, problems := decode(raw)
	if len(problems) > 0 {
		return []Mistake{{Text: "the schema cannot be read: " + problemsError(problems).Error()}}
	}
	object, is := doc.(map[string]any)
	if !is || object["type"] != "object" {
		return []Mistake{{Text: "the schema must have type: object, because providers take no other"}}
	}
	_, err := compileBounded(doc)
	if found := mistakesOf(err, doc); err == nil || found != nil {
		return found
	}
	return []Mistake{{Text: "the schema cannot be used: " + err.Error()}}
}

// mistakesOf returns the places in a schema that an error is about; none if it is about the
// whole.
func mistakesOf(err error, doc any) []Mistake {
	var invalid *jsonschema.SchemaValidationError
	var cause *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &cause) {
		return mistakes(cause, doc)
	}
	return nil
}

// maxMistakes is how many mistakes an error names; one is enough to look again.
const maxMistakes = 5

// unusable returns the error of a schema that cannot be compiled. The library's own would name
// all mistakes, however many there are.
func unusable(err error, doc any) error {
	if IsBound(err) {
		return err
	}
	found := mistakesOf(err, doc)
	if found == nil {
		return fmt.Errorf("the schema cannot be used: %w", err)
	}
	var texts []string
	for _, m := range found[:min(len(found), maxMistakes)] {
		texts = append(texts, shorten(m.String(), 500))
	}
	return errors.New("the schema cannot be used: " + strings.Join(texts, "; "))
}

// mistakes turns the validator's tree of errors about a schema into a list of its leaves.
func mistakes(e *jsonschema.ValidationError, root any) []Mistake {
	if len(e.Causes) == 0 {
		var all []Mistake
		for _, text := range describe(e.ErrorKind, brief(at(root, e.InstanceLocation))) {
			all = append(all, Mistake{e.InstanceLocation, text})
		}
		return all
	}
	causes := e.Causes
	if _, any := e.ErrorKind.(*kind.AnyOf); any {
		// Of several forms one may be of the right type, and says more.
		if fitting := slices.DeleteFunc(slices.Clone(causes), isType); len(fitting) > 0 {
			causes = fitting
		}
	}
	var all []Mistake
	for _, c := range causes {
		for _, m := range mistakes(c, root) {
			if len(all) < maxProblems {
				all = append(all, m)
			}
		}
	}
	return all
}

// isType reports whether an error says that a value has the wrong type.
func isType(e *jsonschema.ValidationError) bool {
	_, is := e.ErrorKind.(*kind.Type)
	return is
}
