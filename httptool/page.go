package httptool

// The text of HTML pages. The tokenizer of x/net/html knows where comments, scripts and tags
// end. No tree is built of its tokens: pages are anybody's, and so time and memory stay
// proportional to their length.

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// unread reports whether nobody reads the content of an element.
func unread(a atom.Atom) bool {
	switch a {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg, atom.Iframe, atom.Object:
		return true
	}
	return false
}

// beginsLine reports whether a tag of an element begins a line.
func beginsLine(a atom.Atom) bool {
	switch a {
	case atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Br, atom.Dd, atom.Div, atom.Dl, atom.Dt,
		atom.Fieldset, atom.Figcaption, atom.Figure, atom.Footer, atom.Form, atom.H1, atom.H2, atom.H3, atom.H4,
		atom.H5, atom.H6, atom.Header, atom.Hr, atom.Li, atom.Main, atom.Nav, atom.Ol, atom.P, atom.Pre,
		atom.Section, atom.Table, atom.Td, atom.Th, atom.Tr, atom.Ul, atom.Title:
		return true
	}
	return false
}

// pageText returns the text of an HTML page.
func pageText(page string) string {
	var b strings.Builder
	var within atom.Atom // the element whose content nobody reads, or 0
	depth := 0           // how many of those are open, one in the other
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		token := z.Next()
		if token == html.ErrorToken {
			return squeeze(b.String())
		}
		if token == html.TextToken && within == 0 {
			b.Write(z.Text())
			continue
		}
		if token != html.StartTagToken && token != html.EndTagToken && token != html.SelfClosingTagToken {
			continue
		}
		name, _ := z.TagName()
		switch element := atom.Lookup(name); {
		case within == 0 && beginsLine(element):
			b.WriteByte('\n')
		case token == html.EndTagToken:
			if element == within {
				if depth--; depth <= 0 {
					within, depth = 0, 0
				}
			}
		case token == html.SelfClosingTagToken && element == atom.Svg:
		case element == within && within != 0, within == 0 && unread(element):
			within = element
			depth++
		}
	}
}

// squeeze leaves one space between words and at most one empty line between lines.
func squeeze(s string) string {
	var b strings.Builder
	empty := 0
	for line := range strings.Lines(s) {
		line = strings.Join(strings.Fields(line), " ")
		if line == "" {
			empty++
			continue
		}
		if b.Len() > 0 {
			b.WriteString(strings.Repeat("\n", min(empty, 1)+1))
		}
		empty = 0
		b.WriteString(line)
	}
	return b.String()
}
