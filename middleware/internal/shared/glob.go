package shared

import "strings"

// Matches reports whether a pattern matches the whole text; * stands for any characters or
// none. The time is at most proportional to the product of both lengths.
func Matches(pattern, text string) bool {
	p, t := 0, 0
	star, from := -1, 0 // the last * and where it ends in the text
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, t
			p++
		case p < len(pattern) && pattern[p] == text[t]:
			p++
			t++
		case star >= 0:
			from++
			p, t = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
