package redaction

import (
	"fmt"
	"regexp/syntax"
	"strings"
)

// tailOf returns an expression that matches the end of a text if it may be the beginning
// of a match of the pattern, which is known to compile. A stream has to hold back its
// leftmost match.
func tailOf(pattern string) string {
	re, _ := syntax.Parse(pattern, syntax.Perl)
	return group(beginnings(loose(re))) + `\z`
}

// loose removes assertions about the context, such as ^ and \b. They only make matches
// fewer, and at the end of a stream the context is not known yet.
func loose(re *syntax.Regexp) *syntax.Regexp {
	switch re.Op {
	case syntax.OpBeginLine,
		syntax.OpEndLine,
		syntax.OpBeginText,
		syntax.OpEndText,
		syntax.OpWordBoundary,
		syntax.OpNoWordBoundary:
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}
	case syntax.OpCapture:
		return loose(re.Sub[0])
	}
	c := *re
	c.Sub = nil
	for _, sub := range re.Sub {
		c.Sub = append(c.Sub, loose(sub))
	}
	return &c
}

// beginnings returns an expression for all texts with which a match can begin, including
// the match itself.
func beginnings(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		return beginningsOfLiteral(re)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return group(re.String()) + "?"
	case syntax.OpQuest:
		return beginnings(re.Sub[0])
	case syntax.OpStar, syntax.OpPlus:
		return group(re.Sub[0].String()) + "*" + beginnings(re.Sub[0])
	case syntax.OpRepeat:
		return beginningsOfRepeat(re)
	case syntax.OpConcat:
		return beginningsOfList(re.Sub)
	case syntax.OpAlternate:
		subs := make([]string, len(re.Sub))
		for i, sub := range re.Sub {
			subs[i] = beginnings(sub)
		}
		return group(strings.Join(subs, "|"))
	}
	return "" // matches nothing, or only the empty text
}

func beginningsOfLiteral(re *syntax.Regexp) string {
	s := ""
	for i := len(re.Rune) - 1; i >= 0; i-- {
		one := &syntax.Regexp{Op: syntax.OpLiteral, Flags: re.Flags, Rune: re.Rune[i : i+1]}
		s = group(one.String()+s) + "?"
	}
	return s
}

func beginningsOfRepeat(re *syntax.Regexp) string {
	times := "*"
	if re.Max == 0 {
		return ""
	} else if re.Max > 0 {
		times = fmt.Sprintf("{0,%d}", re.Max-1)
	}
	return group(re.Sub[0].String()) + times + beginnings(re.Sub[0])
}

func beginningsOfList(list []*syntax.Regexp) string {
	s := beginnings(list[len(list)-1])
	for i := len(list) - 2; i >= 0; i-- {
		s = group(beginnings(list[i]) + "|" + group(list[i].String()) + s)
	}
	return s
}

func group(s string) string { return "(?:" + s + ")" }
