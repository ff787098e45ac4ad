package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// The steps of the formatter. Each reads a file, decides where lines break, and returns the
// new text; none has to know of the others, since they are repeated until nothing changes.

// edit puts text at an offset of a file, in the place of what stands there up to another one.
type edit struct {
	at, to int
	text   string
}

// parsed is a file and what is put into it.
type parsed struct {
	src   []byte
	fset  *token.FileSet
	ast   *ast.File
	edits []edit
}

func parse(src []byte) (*parsed, error) {
	p := &parsed{src: src, fset: token.NewFileSet()}
	f, err := parser.ParseFile(p.fset, "", src, parser.ParseComments|parser.SkipObjectResolution)
	p.ast = f
	return p, err
}

func (p *parsed) offset(pos token.Pos) int { return p.fset.Position(pos).Offset }

func (p *parsed) line(pos token.Pos) int { return p.fset.Position(pos).Line }

func (p *parsed) put(at token.Pos, text string) {
	p.edits = append(p.edits, edit{p.offset(at), p.offset(at), text})
}

// replace puts text in the place of what stands between two places.
func (p *parsed) replace(from, to token.Pos, text string) {
	p.edits = append(p.edits, edit{p.offset(from), p.offset(to), text})
}

// text returns the file with all edits.
func (p *parsed) text() []byte {
	slices.SortStableFunc(p.edits, func(a, b edit) int { return a.at - b.at })
	var out []byte
	last := 0
	for _, e := range p.edits {
		out = append(append(out, p.src[last:e.at]...), e.text...)
		last = e.to
	}
	return append(out, p.src[last:]...)
}

// width returns the columns that a text without line breaks takes.
func width(text string) int {
	return len([]rune(text)) + strings.Count(text, "\t")*(tabWidth-1)
}

// lineAt returns the line of the file that pos is in.
func (p *parsed) lineAt(pos token.Pos) string {
	at := p.offset(pos)
	first := strings.LastIndexByte(string(p.src[:at]), '\n') + 1
	rest, _, _ := strings.Cut(string(p.src[first:]), "\n")
	return rest
}

// maxOnOneLine is how many keyed elements of a literal may share a line.
const maxOnOneLine = 4

// literals gives each keyed element of a large literal a line of its own.
func literals(src []byte) ([]byte, error) {
	p, err := parse(src)
	if err != nil {
		return nil, err
	}
	ast.Inspect(p.ast, func(n ast.Node) bool {
		if l, ok := n.(*ast.CompositeLit); ok && len(l.Elts) > maxOnOneLine {
			if _, keyed := l.Elts[0].(*ast.KeyValueExpr); keyed {
				p.explode(l)
			}
		}
		return true
	})
	return p.text(), nil
}

func (p *parsed) explode(l *ast.CompositeLit) {
	last := l.Lbrace
	for _, e := range l.Elts {
		if p.line(e.Pos()) == p.line(last) {
			p.put(e.Pos(), "\n")
		}
		last = e.End()
	}
	if p.line(l.Rbrace) == p.line(last) {
		comma := ","
		if strings.Contains(string(p.src[p.offset(last):p.offset(l.Rbrace)]), ",") {
			comma = ""
		}
		p.put(l.Rbrace, comma+"\n")
	}
}

// logLines breaks calls of loggers that are too long between pairs of key and value, with
// as many pairs on a line as fit.
func logLines(src []byte) ([]byte, error) {
	p, err := parse(src)
	if err != nil {
		return nil, err
	}
	ast.Inspect(p.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || p.line(call.Pos()) != p.line(call.End()) || width(p.lineAt(call.Pos())) <= columns {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"Debug", "Info", "Warn", "Error", "With"}, sel.Sel.Name) {
			return true
		}
		if first := firstKey(call); first > 0 {
			p.fill(call, first)
			return false
		}
		return true
	})
	return p.text(), nil
}

// firstKey returns the place of the first key among a logger's arguments, and 0 if the call
// is not one of a logger with at least two pairs.
func firstKey(call *ast.CallExpr) int {
	const first = 1
	if (len(call.Args)-first)%2 != 0 || len(call.Args) < first+4 {
		return 0
	}
	for i := first; i < len(call.Args); i += 2 {
		if l, ok := call.Args[i].(*ast.BasicLit); !ok || l.Kind != token.STRING {
			return 0
		}
	}
	return first
}

// fill puts line breaks between pairs. The pairs stand one tab deeper than the call's line.
func (p *parsed) fill(call *ast.CallExpr, first int) {
	line := p.lineAt(call.Pos())
	indent := width(line[:len(line)-len(strings.TrimLeft(line, "\t"))]) + tabWidth
	at := columns
	for i := first; i < len(call.Args); i += 2 {
		pair := string(p.src[p.offset(call.Args[i].Pos()):p.offset(call.Args[i+1].End())])
		if at+len(", ")+width(pair) >= columns-1 {
			p.put(call.Args[i].Pos(), "\n")
			at = indent
		}
		at += width(pair) + len(", ")
	}
}

// texts breaks texts that are too long between words.
func texts(src []byte) ([]byte, error) {
	p, err := parse(src)
	if err != nil {
		return nil, err
	}
	tags := map[*ast.BasicLit]bool{}
	ast.Inspect(p.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			tags[n.Tag] = true
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if n.Kind == token.STRING && !tags[n] {
				p.breakText(n)
			}
		}
		return true
	})
	return p.text(), nil
}

// least is how short a part of a broken text may be.
const least = 24

// breakText breaks a text once; the next round breaks what is left.
func (p *parsed) breakText(l *ast.BasicLit) {
	line := p.lineAt(l.Pos())
	if p.line(l.Pos()) != p.line(l.End()) || width(line) <= columns {
		return
	}
	column := p.fset.Position(l.Pos()).Column - 1
	room := columns - width(line[:column]) - len(` +`) - 1
	if width(l.Value)-least < room && room > width(l.Value) {
		return // what follows the text is too long
	}
	quote := l.Value[:1]
	if at := breakAt(l.Value, min(room, len([]rune(l.Value))-least)); at > 0 {
		p.edits = append(p.edits, edit{p.offset(l.Pos()) + at, p.offset(l.Pos()) + at, quote + " +\n" + quote})
	}
}

// breakAt returns the last place behind a space, or else behind a comma, bar or brace,
// within the first runes of a text, and 0 if there is none.
func breakAt(text string, runes int) int {
	if runes < least {
		return 0
	}
	head := string([]rune(text)[:runes])
	if at := strings.LastIndexByte(head, ' ') + 1; at >= least {
		return at
	}
	if at := strings.LastIndexAny(head, ",|}") + 1; at >= least && !strings.HasSuffix(head[:at], `\`) {
		return at
	}
	return 0
}

// conditions breaks what is still too long once, at the outermost place that is wide enough:
// behind a comma, an operator, or the dot of a chain.
func conditions(src []byte) ([]byte, error) {
	p, err := parse(src)
	if err != nil {
		return nil, err
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
			p.consider(best, at, depth*finer+worse(n))
		}
		return true
	})
	for _, b := range best {
		p.put(b.at, "\n")
	}
	return p.text(), nil
}

// place is where a line may be broken, and how deep in its expression that is.
type place struct {
	at    token.Pos
	depth int
}

// wide is how long the first part of a broken line is at least.
const wide = columns / 3

func (p *parsed) consider(best map[int]place, at token.Pos, depth int) {
	line := p.lineAt(at)
	first := width(line[:p.fset.Position(at).Column-1])
	if width(line) <= columns || first > columns || first < wide {
		return
	}
	if b, ok := best[p.line(at)]; !ok || depth < b.depth || depth == b.depth && at > b.at {
		best[p.line(at)] = place{at, depth}
	}
}

// finer is how many kinds of places of one depth can be told apart.
const finer = 10

// worse is how much deeper a place in n counts than its depth: operators that bind closer are
// broken later, and what is compared belongs together, so it is broken if there is no other
// place.
func worse(n ast.Node) int {
	b, ok := n.(*ast.BinaryExpr)
	if !ok {
		return 0
	}
	switch b.Op {
	case token.LAND:
		return 1
	case token.ADD:
		return 2
	case token.EQL, token.NEQ:
		return 100 * finer
	}
	return 0
}

func nested(n ast.Node) bool {
	switch n.(type) {
	case *ast.CallExpr, *ast.CompositeLit, *ast.ParenExpr, *ast.FuncType:
		return true
	}
	return false
}

// breaks returns the places within n, but not deeper, where a line may be broken: in front
// of elements, operands and the names of a chain.
func (p *parsed) breaks(n ast.Node) (at []token.Pos) {
	several := func(all []ast.Expr) {
		for i, e := range all {
			if i > 0 {
				at = append(at, e.Pos())
			}
		}
	}
	switch n := n.(type) {
	case *ast.CompositeLit:
		several(n.Elts)
	case *ast.CallExpr:
		several(n.Args)
		if link, ok := n.Fun.(*ast.SelectorExpr); ok {
			if _, chain := link.X.(*ast.CallExpr); chain {
				at = append(at, link.Sel.Pos())
			}
		}
	case *ast.ReturnStmt:
		several(n.Results)
	case *ast.AssignStmt:
		several(n.Rhs)
	case *ast.CaseClause:
		several(n.List)
	case *ast.FuncLit:
		if len(n.Body.List) > 0 && p.line(n.Body.Lbrace) == p.line(n.Body.Rbrace) {
			at = append(at, n.Body.List[0].Pos())
		}
	case *ast.FieldList:
		for i, f := range n.List {
			if i > 0 && n.Opening.IsValid() && p.line(n.Opening) == p.line(n.Closing) {
				at = append(at, f.Pos())
			}
		}
	case *ast.BinaryExpr:
		switch n.Op {
		case token.LOR, token.LAND, token.ADD, token.EQL, token.NEQ:
			at = append(at, n.Y.Pos())
		}
	}
	return at
}
