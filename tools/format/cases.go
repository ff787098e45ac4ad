package main

import (
	"bytes"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// Tests have long texts, which stay as they are: they are compared whole, and found when
// somebody searches for them. A line may be as long as its text, but no code stands behind
// the last column, where nobody sees it.

// cases breaks a test's lines that have code behind the last column, each once; the next
// round breaks what is left.
func cases(src []byte) ([]byte, error) {
	p, err := parse(src)
	if err != nil {
		return nil, err
	}
	hidden := p.hidden()
	if len(hidden) == 0 {
		return src, nil
	}
	best := map[int]place{} // by line
	depth := 0
	var stack []ast.Node
	ast.Inspect(p.ast, func(n ast.Node) bool {
		if n == nil {
			if nested(stack[len(stack)-1]) {
				depth--
			}
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		if nested(n) {
			depth++
		}
		for _, at := range p.breaks(n) {
			if hidden[p.line(at)] {
				p.prefer(best, place{at, depth})
			}
		}
		for _, at := range p.caseBreaks(n) {
			if hidden[p.line(at)] {
				p.prefer(best, place{at, depth + worse})
			}
		}
		return true
	})
	for _, b := range best {
		p.put(b.at, "\n")
	}
	return p.text(), nil
}

// hidden returns the lines that have code behind the last column.
func (p *parsed) hidden() map[int]bool {
	lines := map[int]bool{}
	whole := p.whole()
	start, number := 0, 0
	for line := range bytes.Lines(p.src) {
		number++
		if excess := beyond(string(line)); excess > 0 && !within(whole, p.src, start+excess, start+len(line)) {
			lines[number] = true
		}
		start += len(line)
	}
	return lines
}

// beyond returns where in a line the first byte behind the last column is, 0 if none is.
func beyond(line string) int {
	column := 0
	for i, r := range strings.TrimRight(line, "\r\n") {
		if column++; r == '\t' {
			column += tabWidth - 1
		}
		if column > columns {
			return i
		}
	}
	return 0
}

// span is a part of a file, from byte to byte.
type span struct{ from, to int }

// output is how the comment begins that has an example's output.
var output = regexp.MustCompile(`(?i)^\s*(unordered )?output:`)

// whole returns the texts of a file that are compared: literals, and what examples print.
func (p *parsed) whole() []span {
	var all []span
	ast.Inspect(p.ast, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			all = append(all, span{p.offset(l.Pos()), p.offset(l.End())})
		}
		return true
	})
	for _, c := range p.ast.Comments {
		if output.MatchString(c.Text()) {
			all = append(all, span{p.offset(c.Pos()), p.offset(c.End())})
		}
	}
	return all
}

// within reports whether what a line has from a byte on is part of one text, apart from
// what closes the literals and calls around it.
func within(all []span, src []byte, from, to int) bool {
	for _, s := range all {
		if s.from <= from && from < s.to {
			from = min(s.to, to)
			break
		}
	}
	return len(bytes.Trim(src[from:to], ")}],{+ \r\n")) == 0
}

// worse is how much deeper a place counts that is only taken if there is no other.
const worse = 100

// prefer keeps the better of two places: the outermost; then the last one within the
// columns, or else the first one behind them.
func (p *parsed) prefer(best map[int]place, at place) {
	first := func(at place) int { return width(p.lineAt(at.at)[:p.fset.Position(at.at).Column-1]) }
	if first(at) < wide {
		return
	}
	line := p.line(at.at)
	b, ok := best[line]
	fits := first(at) <= columns
	switch {
	case !ok, at.depth < b.depth:
	case at.depth > b.depth, !fits, first(b) <= columns && at.at < b.at:
		return
	}
	best[line] = at
}

// caseBreaks returns the places within n, but not deeper, where only a test's line is
// broken, and only if it has no other.
func (p *parsed) caseBreaks(n ast.Node) (at []token.Pos) {
	several := func(all []ast.Expr) {
		for i, e := range all {
			if i > 0 {
				at = append(at, e.Pos())
			}
		}
	}
	switch n := n.(type) {
	case *ast.ReturnStmt:
		several(n.Results)
	case *ast.AssignStmt:
		several(n.Rhs)
	case *ast.CaseClause:
		several(n.List)
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			at = append(at, n.Y.Pos())
		}
	case *ast.FuncLit:
		if len(n.Body.List) > 0 && p.line(n.Body.Lbrace) == p.line(n.Body.Rbrace) {
			at = append(at, n.Body.List[0].Pos())
		}
	}
	return at
}
