package redaction

import (
	"regexp"
	"sync"
)

// keyHeader begins a private key in PEM or PGP format. keyBody is what it may contain,
// including the \n of a key inside JSON.
const (
	keyHeader = `-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`
	keyFooter = `-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`
	keyBody   = `[A-Za-z0-9+/=\s\\:;,.()@_-]*`
	cardRun   = `\d(?:[ -]?\d)`
)

// builtinRules find secrets with a well-known shape. They are compiled once, because that
// takes some milliseconds.
var builtinRules = sync.OnceValue(func() []secretRule {
	return []secretRule{
		// A key without an end is hidden as far as it may extend.
		builtin("private_key", keyHeader+"(?:"+keyBody+"?"+keyFooter+"|"+keyBody+")", keyHeader, "-----BEGIN "),
		builtin("url_password", `\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s:/@]*:(?P<secret>[^\s/@]+)@`, "", "://"),
		builtin("bearer_token", `\b(?:[Bb]earer|BEARER)[ \t]+(?P<secret>[A-Za-z0-9._~+/=-]{16,})`, "", "earer",
			"BEARER"),
		builtin("jwt", `\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`, "", "eyJ"),
		builtin(
			"api_key",
			`\b(?:sk-[A-Za-z0-9_-]{16,}|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|(?:AKIA|ASIA)[A-Z0-9]{16}\b`+
				`|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|xox[abeoprs]-[A-Za-z0-9-]{10,}|`+
				`AIza[A-Za-z0-9_-]{30,}|hfc_[A-Za-z0-9_-]{4,}\.[a-z2-7]{16,})`,
			"",
			"sk-",
			"k_live_",
			"k_test_",
			"AKIA",
			"ASIA",
			"ghp_",
			"gho_",
			"ghu_",
			"ghs_",
			"ghr_",
			"github_pat_",
			"xox",
			"AIza",
			"hfc_",
		),
		{
			name:      "card_number",
			minDigits: minCardDigits,
			re:        regexp.MustCompile(`\b` + cardRun + `{12,}\b`),
			tail:      regexp.MustCompile(cardRun + `*[ -]?\z`),
			narrow:    cardNumbers,
		},
	}
})

// builtin makes a rule. Its tail is derived from partial, or from the pattern if partial
// is empty.
func builtin(name, pattern, partial string, hints ...string) secretRule {
	if partial == "" {
		partial = pattern
	}
	re := regexp.MustCompile(pattern)
	return secretRule{
		name:  name,
		hints: hints,
		re:    re,
		group: max(re.SubexpIndex("secret"), 0),
		tail:  regexp.MustCompile(tailOf(partial)),
	}
}
