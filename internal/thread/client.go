package thread

// The values of holdfast.ClientPolicy. An empty one counts as the first of its kind.
const (
	// ImportAll takes a whole history into a new thread.
	ImportAll = "all"
	// ImportUsers takes only the user messages of it.
	ImportUsers = "users"
	// ImportNone takes only the user messages at its end.
	ImportNone = "none"

	// ShowAsSystem gives a client's text the authority of the agent's instructions.
	ShowAsSystem = "system"
	// ShowAsUser makes it a user message in a marked block.
	ShowAsUser = "user"
	// ShowNothing keeps it from the model.
	ShowNothing = "drop"

	// MediaHTTPS takes https URLs.
	MediaHTTPS = "https"
	// MediaAny takes URLs of any scheme.
	MediaAny = "any"
	// MediaNone takes no URL that somebody would have to fetch.
	MediaNone = "none"
)
