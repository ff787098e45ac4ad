package tools

// The tool calculate: a parser for arithmetic expressions whose errors a model can act
// on.

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
)

type calculateArgs struct {
	Expression string `json:"expression" jsonschema:"an arithmetic expression, like 2 * (3 + 4)^2; it has + - * / % ^"`
}

// Calculate is the tool calculate.
func Calculate() holdfast.Tool {
	return holdfast.NewTool("calculate", "Computes an arithmetic expression.",
		func(_ context.Context, args calculateArgs) (string, error) {
			v, err := evaluate(args.Expression)
			if err != nil {
				return "", fmt.Errorf("%q cannot be computed: %w", args.Expression, err)
			}
			return format(v), nil
		}, holdfast.WithEffect(holdfast.EffectPure))
}

// format writes a number with the 15 digits for which a float64 is reliable, so that
// 0.1 + 0.2 is 0.3.
func format(v float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 15, 64), 64)
	if err != nil {
		rounded = v
	}
	if a := math.Abs(rounded); a != 0 && (a < 1e-6 || a >= 1e21) {
		return strconv.FormatFloat(rounded, 'g', -1, 64)
	}
	// Adding 0 turns -0 into 0.
	return strconv.FormatFloat(rounded+0, 'f', -1, 64)
}

const (
	maxExpression = 1000 // characters
	maxDepth      = 100  // of nested parentheses, signs and powers
)

// evaluate computes an expression:
//
//	sum     = product { ("+" | "-") product }
//	product = signed { ("*" | "/" | "%") signed }
//	signed  = ("+" | "-") signed | power
//	power   = atom [ "^" signed ]
//	atom    = number | "(" sum ")"
func evaluate(expression string) (float64, error) {
	if utf8.RuneCountInString(expression) > maxExpression {
		return 0, fmt.Errorf("it is longer than %d characters", maxExpression)
	}
	p := &parser{
		text: []rune(strings.NewReplacer("×", "*", "·", "*", "÷", "/", "−", "-", "**", "^").Replace(expression)),
	}
	v, err := p.sum()
	if err != nil {
		return 0, err
	}
	if p.peek() != end {
		return 0, p.unexpected()
	}
	switch {
	case math.IsNaN(v):
		return 0, fmt.Errorf("the result is not a real number")
	case math.IsInf(v, 0):
		return 0, fmt.Errorf("the result is too large")
	}
	return v, nil
}

// end stands for the end of the expression.
const end rune = -1

type parser struct {
	text  []rune
	pos   int
	depth int
}

// peek returns the next character that is not a space, or end.
func (p *parser) peek() rune {
	for p.pos < len(p.text) && strings.ContainsRune(" \t\r\n", p.text[p.pos]) {
		p.pos++
	}
	if p.pos == len(p.text) {
		return end
	}
	return p.text[p.pos]
}

func (p *parser) unexpected() error {
	switch c := p.peek(); c {
	case end:
		return fmt.Errorf("it ends where a number is expected")
	case ')':
		return fmt.Errorf("the ) at character %d has no (", p.pos+1)
	default:
		return fmt.Errorf("%q at character %d is not expected", c, p.pos+1)
	}
}

func (p *parser) sum() (float64, error) {
	v, err := p.product()
	for err == nil {
		op := p.peek()
		if op != '+' && op != '-' {
			break
		}
		p.pos++
		var w float64
		if w, err = p.product(); op == '+' {
			v += w
		} else {
			v -= w
		}
	}
	return v, err
}

func (p *parser) product() (float64, error) {
	v, err := p.signed()
	for err == nil {
		op := p.peek()
		if op != '*' && op != '/' && op != '%' {
			break
		}
		at := p.pos + 1
		p.pos++
		var w float64
		w, err = p.signed()
		switch {
		case err != nil:
		case op == '*':
			v *= w
		case w == 0:
			err = fmt.Errorf("division by zero at character %d", at)
		case op == '/':
			v /= w
		default:
			v = math.Mod(v, w)
		}
	}
	return v, err
}

func (p *parser) signed() (float64, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		return 0, fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	switch p.peek() {
	case '-':
		p.pos++
		v, err := p.signed()
		return -v, err
	case '+':
		p.pos++
		return p.signed()
	}
	return p.power()
}

func (p *parser) power() (float64, error) {
	base, err := p.atom()
	if err != nil || p.peek() != '^' {
		return base, err
	}
	p.pos++
	exponent, err := p.signed()
	return math.Pow(base, exponent), err
}

func (p *parser) atom() (float64, error) {
	c := p.peek()
	if c == '(' {
		open := p.pos + 1
		p.pos++
		v, err := p.sum()
		if err != nil {
			return 0, err
		}
		if p.peek() == end {
			return 0, fmt.Errorf("the ( at character %d is not closed", open)
		}
		if p.peek() != ')' {
			return 0, p.unexpected()
		}
		p.pos++
		return v, nil
	}
	if c != '.' && (c < '0' || c > '9') {
		return 0, p.unexpected()
	}
	return p.number()
}

func (p *parser) number() (float64, error) {
	start := p.pos
	for p.pos < len(p.text) && (p.text[p.pos] == '.' || p.text[p.pos] >= '0' && p.text[p.pos] <= '9') {
		p.pos++
	}
	text := string(p.text[start:p.pos])
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q at character %d is not a number", text, start+1)
	}
	return v, nil
}
