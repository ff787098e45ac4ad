package exchange

import (
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

// Invalid returns the error of a request that cannot be read or contradicts itself; field
// is the member that is wrong, if it is one.
func Invalid(field, message, hint string, args ...any) *holdfast.Error {
	e := holdfast.Errorf(codes.InvalidInput, "%s", message).WithHint(hint, args...)
	if field != "" {
		e = e.With("field", field)
	}
	return e
}
