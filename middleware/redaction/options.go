package redaction

// Options are the options of [New] and [NewLogHandler].
type Options struct {
	// Patterns say what is hidden, besides the built-in ones.
	Patterns []Pattern `json:"patterns,omitempty"`
	// Builtin turns the built-in patterns off if it is false: api_key, bearer_token,
	// jwt, private_key, url_password, card_number.
	Builtin *bool `json:"builtin,omitempty"`
	// Arguments hides secrets in the arguments of tool calls too. Then the tools get
	// them so: nothing that a tool needs may look like a secret.
	Arguments bool `json:"arguments,omitempty"`
}

// Pattern is a kind of secret.
type Pattern struct {
	// Name is shown in the secret's place, as "[redacted:name]", and counted: lower
	// case letters, digits, _ and -.
	Name string `json:"name"`
	// Regexp is what is hidden, in RE2's syntax. If it has a group named secret, as in
	// "pin: (?P<secret>[0-9]{4})", only the group is hidden.
	Regexp string `json:"regexp"`
}
