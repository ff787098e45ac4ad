package config

import (
	"fmt"
	"strings"
	"unicode"
)

// suggest returns the end of a message about an unknown word: the word that was probably
// meant, or else all known words.
func suggest(word string, known []string) string {
	if meant := closest(word, known); meant != "" {
		return fmt.Sprintf("; did you mean %q?", meant)
	}
	return listing(known)
}

// listing returns the end of a message with all known words.
func listing(known []string) string {
	if len(known) == 0 {
		return "; there are none here"
	}
	return "; known here: " + strings.Join(known, ", ")
}

// closest returns the known word that word is probably a misspelling of, the first one
// if several are equally close, or "".
func closest(word string, known []string) string {
	runes := []rune(strings.ToLower(word))
	// Allow one mistake in a short word and up to three in a long one. A word longer
	// than any name is not a misspelling and not worth the time.
	limit := min(1+len(runes)/5, 3)
	if len(runes) > 64 {
		return ""
	}
	best, meant := limit+1, ""
	for _, k := range known {
		if d := distance(runes, []rune(strings.ToLower(k))); d < best {
			best, meant = d, k
		}
	}
	return meant
}

// distance returns the number of edits between two words: insert, delete, replace, or
// swap two neighbors (optimal string alignment).
func distance(a, b []rune) int {
	before, previous, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(previous[j]+1, row[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, previous, row = previous, row, before
	}
	return previous[len(b)]
}

// show quotes a value for a message. It shortens the value, and hides it if it may be a
// secret, because messages end up in terminals and logs.
func show(value string) string {
	if looksLikeKey(value) {
		return "a value that looks like a key (not shown)"
	}
	if r := []rune(value); len(r) > 40 {
		value = string(r[:40]) + "…"
	}
	return fmt.Sprintf("%q", value)
}

// keyPrefixes returns the prefixes of our keys and those of common providers.
func keyPrefixes() []string {
	return []string{"sk-", "sk_", "hf_", "gsk_", "xai-", "aiza", "ghp_", "bearer ", "eyj"}
}

// looksLikeKey guesses whether a value is a secret. It takes a long run of letters and
// digits without a space for one: hiding a harmless value costs little.
func looksLikeKey(value string) bool {
	lower := strings.ToLower(value)
	for _, prefix := range keyPrefixes() {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	if len(value) < 32 {
		return false
	}
	letters, digits := 0, 0
	for _, r := range value {
		switch {
		case unicode.IsLetter(r):
			letters++
		case unicode.IsDigit(r):
			digits++
		case r != '_' && r != '-':
			return false
		}
	}
	return letters > 0 && digits > 3
}
