package main

import (
	"bytes"
	"go/ast"
	"go/token"
	"strings"
)

// The first steps put together again what was broken, so that a text has one form, however it
// was broken before: a call and the parameters of a function on one line, if nothing in them has
// to be on lines of its own. Then it is broken where that is too long.

// joined puts calls and parameters together, and breaks the parameters that are too long.
func joined(src []byte) ([]byte, error) {
	p, err := parse(src)
	if err != nil {
		return nil, err
	}
	done := token.NoPos // everything before it has been put together
	ast.Inspect(p.ast, func(n ast.Node) bool {
		if n == nil || n.Pos() < done {
			return n != nil
		}
		switch n := n.(type) {
		case *ast.CallExpr:
			if p.join(n.Lparen, n.Rparen, ends(n.Args)) {
				done = n.Rparen
			}
		case *ast.FuncDecl:
			p.parameters(n)
		case *ast.BinaryExpr:
			if n.Op == token.ADD {
				p.joinTexts(n)
			} else if p.line(n.OpPos) != p.line(n.Y.Pos()) && !p.comment(n.OpPos, n.Y.Pos()) {
				p.replace(n.OpPos+token.Pos(len(n.Op.String())), n.Y.Pos(), " ")
			}
		}
		return true
	})
	return p.text(), nil
}

// joinTexts makes one text of two that were broken behind a space. One that ends otherwise is
// broken where its author wants it.
func (p *parsed) joinTexts(n *ast.BinaryExpr) {
	before := n.X
	if sum, ok := before.(*ast.BinaryExpr); ok && sum.Op == token.ADD {
		before = sum.Y
	}
	first, ok := before.(*ast.BasicLit)
	second, ok2 := n.Y.(*ast.BasicLit)
	if !ok || !ok2 || p.line(first.Pos()) == p.line(second.Pos()) || p.comment(first.End(), second.Pos()) {
		return
	}
	quote := first.Value[:1]
	if strings.Contains(first.Value+second.Value, "\n") {
		return // no step breaks a raw string of several lines
	}
	if strings.HasSuffix(first.Value, " "+quote) && strings.HasPrefix(second.Value, quote) {
		p.replace(first.End()-1, second.Pos()+1, "")
	}
}

// part is an element of a list, from its first byte to the one behind its last.
type part struct{ from, to token.Pos }

func ends[N ast.Node](all []N) (parts []part) {
	for _, n := range all {
		parts = append(parts, part{n.Pos(), n.End()})
	}
	return parts
}

// join puts what stands between parentheses on the line of the first one, unless there is a
// comment between elements, or one that takes several lines is not the last.
func (p *parsed) join(left, right token.Pos, parts []part) (changed bool) {
	if p.line(left) == p.line(right) || len(parts) == 0 {
		return false
	}
	last := len(parts) - 1
	before := left + 1
	for i, e := range parts {
		if p.comment(before, e.from) || i < last && p.line(e.from) != p.line(e.to) {
			return false
		}
		before = e.to
	}
	if p.comment(before, right) {
		return false
	}
	before = left + 1
	for i, e := range parts {
		if p.line(before) != p.line(e.from) {
			between := ", "
			if i == 0 {
				between = ""
			}
			p.replace(before, e.from, between)
			changed = true
		}
		before = e.to
	}
	if p.line(before) != p.line(right) {
		p.replace(before, right, p.dots(before, right))
		changed = true
	}
	return changed
}

// dots are those behind the last argument of a call, if there are any.
func (p *parsed) dots(from, to token.Pos) string {
	if bytes.Contains(p.src[p.offset(from):p.offset(to)], []byte("...")) {
		return "..."
	}
	return ""
}

// list is the text of a list's elements, separated by commas.
func (p *parsed) list(parts []part) string {
	var texts []string
	for _, e := range parts {
		texts = append(texts, string(p.src[p.offset(e.from):p.offset(e.to)]))
	}
	return strings.Join(texts, ", ")
}

// parameters puts a function's parameters on its own line or, if that is too long, on lines
// between the parentheses, as many on each as fit.
func (p *parsed) parameters(f *ast.FuncDecl) {
	list := f.Type.Params
	parts := ends(list.List)
	if len(parts) == 0 || p.comment(list.Opening, list.Closing) {
		return
	}
	for _, e := range parts {
		if p.line(e.from) != p.line(e.to) {
			return
		}
	}
	all := p.list(parts)
	before := width(p.lineAt(list.Opening)[:p.fset.Position(list.Opening).Column])
	behind, _, _ := strings.Cut(string(p.src[p.offset(list.Closing):]), "\n")
	switch {
	case before+width(all)+width(behind) <= columns:
		if p.line(list.Opening) != p.line(list.Closing) {
			p.replace(list.Opening+1, list.Closing, all)
		}
	case p.line(list.Opening) == p.line(list.Closing) || !p.filled(parts):
		p.replace(list.Opening+1, list.Closing, "\n"+p.fillParts(parts)+",\n")
	}
}

// filled reports whether parameters stand on lines as fillParts puts them.
func (p *parsed) filled(parts []part) bool {
	text := string(p.src[p.offset(parts[0].from):p.offset(parts[len(parts)-1].to)])
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n") == p.fillParts(parts)
}

func (p *parsed) fillParts(parts []part) string {
	var b strings.Builder
	at := tabWidth
	for i, e := range parts {
		text := string(p.src[p.offset(e.from):p.offset(e.to)])
		switch {
		case i > 0 && at+len(", ")+width(text)+len(",") > columns:
			b.WriteString(",\n")
			at = tabWidth
		case i > 0:
			b.WriteString(", ")
			at += len(", ")
		}
		b.WriteString(text)
		at += width(text)
	}
	return b.String()
}

// comment reports whether there is one between two places.
func (p *parsed) comment(from, to token.Pos) bool {
	for _, c := range p.ast.Comments {
		if from < c.Pos() && c.Pos() < to {
			return true
		}
	}
	return false
}
