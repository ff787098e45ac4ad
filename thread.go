package holdfast

// Principal is the caller as authentication established it, never as a request body
// claims it.
type Principal struct {
	// Tenant separates customers: nothing of one is visible to another.
	Tenant string `json:"tenant"`
	// User owns threads within a tenant.
	User string `json:"user"`
}
