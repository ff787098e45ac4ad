package archtest

// The list of what exceeded a gauge when the gauge was made, and by how much. Nothing is added
// and nothing here may grow; what has come within the limit must be removed.
var (
	overRings = map[string]int{}

	overMethods = map[string]int{}

	overStatements = map[string]int{}

	// Sentences that TestLanguageOfCode refuses, by package.
	overLanguage = map[string]int{}

	overEmbedding = map[string]int{}
)
