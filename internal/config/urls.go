package config

// The URLs that the file may have, and the parts that they must not have.

import (
	"net/url"
	"regexp"
	"slices"
)

// wrongURL returns what is wrong with a baseURL; "" if nothing is. The value is not shown:
// if it cannot be parsed, a password may be anywhere in it.
func wrongURL(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		return "baseURL is not a URL; write it in full, like http://localhost:11434/v1"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "baseURL must not contain a user, a password, a ? or a #; name the key's " +
			"environment variable in apiKeyEnv"
	}
	return ""
}

// wrongProxy returns what is wrong with a proxy; "" if nothing is. The value is not shown,
// because it may have a password in it.
func wrongProxy(text string) string {
	if text == "direct" {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme) || u.Hostname() == "" ||
		u.RawQuery != "" || u.Fragment != "" {
		return "proxy is not a URL; write it in full, like http://proxy:3128, or write direct for none"
	}
	return ""
}

var (
	// userPasswords matches the password of a URL, as in https://user:password@host/.
	userPasswords = regexp.MustCompile(`^[A-Za-z0-9+.-]*://[^/?#@]*:[^/?#@]+@`)
	// queryPasswords matches a member of a query whose name says that its value is secret.
	queryPasswords = regexp.MustCompile(`(?i)[?&]([a-z0-9]+[_-])*(access|auth|api)?[_-]?(token|apikey|` +
		`api[_-]key|secret|password|` +
		`passwd|signature|sig)=[^&#]`)
	// arguments matches what is filled in at each call: ${NAME} and {name}.
	arguments = regexp.MustCompile(`\$?\{[^}]*\}`)
)

// hasPassword reports a URL with a literal password in it, or with another secret that can be
// told by its name and not by its form.
func hasPassword(value string) bool {
	value = arguments.ReplaceAllString(value, "")
	return userPasswords.MatchString(value) || queryPasswords.MatchString(value)
}
