package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"regexp"
	"testing"
	"unicode/utf8"
)

const (
	maxColumns = 120 // of a line
	tabColumns = 4   // of a tab
	maxShared  = 4   // elements of a literal whose fields have names, for them to share lines
)

// columns has the lines that are too long. In tests, what is compared as a whole may be
// longer than a line, if no code is behind it.
func columns(all []source) []measured {
	var long []measured
	for _, s := range all {
		var whole []span
		if s.test {
			whole = compared(s)
		}
		start, number := 0, 0
		for line := range bytes.Lines(s.text) {
			number++
			n, excess := width(line)
			if excess > 0 && !within(whole, s.text, start+excess, start+len(line)) {
				at := fmt.Sprintf("%s:%d", s.short, number)
				long = append(long, measured{key: at, n: n, complaint: func() string {
					return fmt.Sprintf("%s: the line has %d columns, at most %d are allowed: break it", at, n,
						maxColumns)
				}})
			}
			start += len(line)
		}
	}
	return long
}

// width is how many columns a line has, and where in it the first one beyond the limit
// is; 0 if there is none.
func width(line []byte) (columns, excess int) {
	line = bytes.TrimRight(line, "\r\n")
	for i := 0; i < len(line); {
		r, size := utf8.DecodeRune(line[i:])
		if columns++; r == '\t' {
			columns += tabColumns - 1
		}
		if columns > maxColumns && excess == 0 {
			excess = i
		}
		i += size
	}
	return columns, excess
}

// span is a part of a file, from byte to byte.
type span struct{ from, to int }

// output is how the comment begins with which an example's output is compared.
var output = regexp.MustCompile(`(?i)^\s*(unordered )?output:`)

// compared is what tests compare with: string literals, and what examples print.
func compared(s source) []span {
	var all []span
	add := func(n ast.Node) {
		all = append(all, span{from: s.fset.Position(n.Pos()).Offset, to: s.fset.Position(n.End()).Offset})
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			add(literal)
		}
		return true
	})
	for _, comment := range s.file.Comments {
		if output.MatchString(comment.Text()) {
			add(comment)
		}
	}
	return all
}

// within reports whether all of a line from a byte on is part of one of the spans, apart
// from what closes the literals around it.
func within(all []span, text []byte, from, to int) bool {
	for _, s := range all {
		if s.from <= from && from < s.to {
			from = min(s.to, to)
			break
		}
	}
	return len(bytes.Trim(text[from:to], ")}],{+ \r\n")) == 0
}

// literals has the literals of more than a few fields that are packed: those with keys in
// all files, and those of structs, which could have keys, in what is compiled here.
func literals(files []source, packages []*code) []measured {
	var all []measured
	for _, s := range files {
		if !s.test {
			all = append(all, packed(s.fset, s.file, s.short, keyed)...)
		}
	}
	for _, c := range packages {
		bare := func(literal *ast.CompositeLit) bool { return !keyed(literal) && ofStruct(c.info.TypeOf(literal)) }
		for _, f := range c.files {
			if !c.again && !ast.IsGenerated(f) {
				all = append(all, packed(c.fset, f, path.Join(c.name, c.file(f.Package)), bare)...)
			}
		}
	}
	return all
}

func packed(fset *token.FileSet, f *ast.File, short string, counts func(*ast.CompositeLit) bool) []measured {
	var all []measured
	ast.Inspect(f, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok || len(literal.Elts) <= maxShared || !counts(literal) || oneALine(fset, literal) {
			return true
		}
		at := fmt.Sprintf("%s:%d", short, fset.Position(literal.Lbrace).Line)
		all = append(all, measured{key: at, n: len(literal.Elts), complaint: func() string {
			return fmt.Sprintf("%s: a literal packs its %d elements: give each a line", at, len(literal.Elts))
		}})
		return true
	})
	return all
}

func keyed(literal *ast.CompositeLit) bool {
	_, ok := literal.Elts[0].(*ast.KeyValueExpr)
	return ok
}

// ofStruct reports whether a literal's type is a struct, or a pointer to one, as its type
// is where the & is left out.
func ofStruct(t types.Type) bool {
	if pointer, ok := t.Underlying().(*types.Pointer); ok {
		t = pointer.Elem()
	}
	_, ok := t.Underlying().(*types.Struct)
	return ok
}

// oneALine reports whether each element begins below the end of the one before.
func oneALine(fset *token.FileSet, literal *ast.CompositeLit) bool {
	end := literal.Lbrace
	for _, e := range literal.Elts {
		if fset.Position(e.Pos()).Line <= fset.Position(end).Line {
			return false
		}
		end = e.End()
	}
	return fset.Position(literal.Rbrace).Line > fset.Position(end).Line
}

// TestColumnsSeen: in code a line is too long whatever it has on it, in tests it may be a
// string's.
func TestColumnsSeen(t *testing.T) {
	t.Parallel()
	const why = " columns, at most 120 are allowed: break it"
	const want = "columns_test.go:5: the line has 141" + why + "\n" +
		"columns_test.go:6: the line has 125" + why + "\n" +
		"columns.go:12: the line has 122" + why + "\n" +
		"columns.go:4: the line has 121" + why + "\n" +
		"columns.go:7: the line has 121" + why
	wantRefused(t, gauge{}, columns(sources(t, "testdata/columns")), want)
}

// TestLiteralsSeen: a literal is packed with keys or without, and if only two elements
// share a line.
func TestLiteralsSeen(t *testing.T) {
	t.Parallel()
	const dir = "testdata/literals"
	const why = ": a literal packs its 5 elements: give each a line"
	const want = "literals.go:12" + why + "\n" +
		"literals.go:19" + why + "\n" +
		"literals.go:6" + why + "\n" +
		"literals/literals.go:9" + why
	wantRefused(t, gauge{}, literals(sources(t, dir), []*code{fixture(t, "literals")}), want)
}
