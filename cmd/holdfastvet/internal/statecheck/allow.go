package statecheck

import (
	"go/ast"
	"go/token"
	"strings"
)

// allowPrefix starts a comment that silences a warning on its line and the next one;
// the code and a reason follow.
const allowPrefix = "//holdfast:allow"

// line is a place that a comment can refer to.
type line struct {
	file   string
	number int
}

// allow is what a comment says.
type allow struct {
	code   string
	reason string
}

func findAllows(fset *token.FileSet, files []*ast.File) map[line][]allow {
	found := map[line][]allow{}
	for _, f := range files {
		for _, group := range f.Comments {
			for _, comment := range group.List {
				rest, ok := strings.CutPrefix(comment.Text, allowPrefix)
				if !ok || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
					continue
				}
				code, reason, _ := strings.Cut(strings.TrimSpace(rest), " ")
				at := fset.Position(comment.Pos())
				said := allow{code: code, reason: strings.TrimSpace(reason)}
				for _, l := range []line{{at.Filename, at.Line}, {at.Filename, at.Line + 1}} {
					found[l] = append(found[l], said)
				}
			}
		}
	}
	return found
}

// allowed reports whether a comment allows the mistake. The note says why an existing
// comment does not count.
func (c *checker) allowed(code string, pos token.Pos) (ok bool, note string) {
	at := c.pass.Fset.Position(pos)
	for _, a := range c.allows[line{at.Filename, at.Line}] {
		switch {
		case a.code != code:
		case code != codeInPlace && code != codeLost:
			note = " (" + allowPrefix + " does not count: " + code +
				" is an error, and only HF002 and HF004 can be allowed.)"
		case a.reason == "":
			note = " (" + allowPrefix + " " + code + " does not count: it needs a reason after the code.)"
		default:
			return true, ""
		}
	}
	return false, note
}
