package simulate

// Violation is a promise that was broken.
type Violation struct {
	// Promise is which one.
	Promise string
	// Detail says how.
	Detail string
}

// Error implements error.
func (v *Violation) Error() string { return v.Promise + ": " + v.Detail }
