package redaction

// Options are the options of [New] and [NewLogHandler].
type Options struct {
	// Patterns are kinds of secrets besides the built-in ones.
	Patterns []Pattern `json:"patterns,omitempty"`
	// Builtin is whether the built-in patterns are used: api_key, bearer_token, jwt,
	// private_key, url_password, card_number. Nil means that they are.
	Builtin *bool `json:"builtin,omitempty"`
	// Arguments hides secrets in the arguments of tool calls too, before the tools get
	// them: use it only if no tool needs anything that looks like a secret.
	Arguments bool `json:"arguments,omitempty"`
}

// Pattern is a kind of secret.
type Pattern struct {
	// Name replaces the secret, as "[redacted:name]", and is what is counted. It consists
	// of lower case letters, digits, _ and -.
	Name string `json:"name"`
	// Regexp matches the secret, in RE2 syntax. If it has a group named secret, as in
	// "pin: (?P<secret>[0-9]{4})", only that group is hidden.
	Regexp string `json:"regexp"`
}
