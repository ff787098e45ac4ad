package statecheck

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// stateNames is what state.Register accepts.
var stateNames = regexp.MustCompile(`^[a-z0-9_-]+(\.[a-z0-9_-]+)+$`)

// maxName is the longest name that state.Register accepts.
const maxName = 128

// containerMembers are the members of the JSON form of all states.
var containerMembers = []string{"schemaSignature", "schemaVersion", "stateVersions", "states", "newerStates"}

// checkName checks a name that is known: whether state.Register would refuse it when the
// program starts, and whether it is reserved for the server.
func (c *checker) checkName(s *spec) {
	if !s.named {
		return
	}
	switch name := s.name; {
	case slices.Contains(containerMembers, name):
		c.report(codeCollision, s.nameAt,
			fmt.Sprintf("the name %q is a member of the form in which all states are stored. Name "+
				"the state \"owner.name\".", name))
	case strings.Contains(name, ","):
		c.report(codeCollision, s.nameAt,
			fmt.Sprintf("the name %q has a comma, which separates the names in a schema's signature. Leave it out.",
				name))
	case !stateNames.MatchString(name):
		c.report(codeCollision, s.nameAt,
			fmt.Sprintf("the name %q is not owner.name, and state.Register panics. Use lower case letters, digits, _ "+
				"and -, with at least one dot.", name), lowerCase(s)...)
	case len(name) > maxName:
		c.report(codeCollision, s.nameAt,
			fmt.Sprintf("the name %q is longer than %d bytes, and state.Register panics. Use a shorter one.", name,
				maxName))
	case strings.HasPrefix(name, "holdfast.") && !c.isOurs():
		c.report(codeCollision, s.nameAt,
			fmt.Sprintf("the name %q is reserved: names that start with \"holdfast.\" belong to the server's own "+
				"middleware. Start it with a name of your own.", name))
	}
}

func (c *checker) isOurs() bool {
	path := pathOf(c.pass.Pkg)
	return path == holdfast || strings.HasPrefix(path, holdfast+"/")
}

// lowerCase returns the fix of a name whose only mistake is upper case. It is safe since
// nothing can be stored under the old name.
func lowerCase(s *spec) []analysis.SuggestedFix {
	lit, ok := s.nameAt.(*ast.BasicLit)
	lower := strings.ToLower(s.name)
	if !ok || lit.Kind != token.STRING || !stateNames.MatchString(lower) || strings.HasPrefix(lower, "holdfast.") {
		return nil
	}
	return []analysis.SuggestedFix{{
		Message:   "Write the name in lower case",
		TextEdits: []analysis.TextEdit{{Pos: lit.Pos(), End: lit.End(), NewText: []byte(strconv.Quote(lower))}},
	}}
}
