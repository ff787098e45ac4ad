// Package failure names the kinds of failures of a model call, as a holdfast.ModelError has
// them. Authors of models set them; code that chooses between models reads them.
package failure

// Kind is what kind of failure it is. It decides what may be tried next.
type Kind string

// The kinds. An error without one says only whether it is retryable.
const (
	// Cut: the answer broke off, fell silent or cannot be read. Another attempt may
	// follow at once.
	Cut Kind = "cut"
	// Overloaded: the provider is overloaded, broken or out of reach.
	Overloaded Kind = "overloaded"
	// Rate: too many requests in a short time.
	Rate Kind = "rate"
	// Quota: the account has nothing left. Waiting does not help.
	Quota Kind = "quota"
	// Auth: the provider does not accept the key, or does not know the model. The
	// server's operator must change something.
	Auth Kind = "auth"
	// TooLong: the conversation is too long for the model.
	TooLong Kind = "too_long"
	// Refused: the provider or the model declines to answer this conversation.
	Refused Kind = "refused"
	// Invalid: the provider does not accept the form of the request, or the server
	// does not accept the form of the answer. No other attempt helps.
	Invalid Kind = "invalid"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Cut, Overloaded, Rate, Quota, Auth, TooLong, Refused, Invalid} }
