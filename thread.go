package holdfast

import "github.com/holdfast-agents/holdfast/access"

// Principal is the caller as authentication established it, never as a request body
// claims it.
type Principal struct {
	// Tenant separates customers: nothing of one is visible to another.
	Tenant string `json:"tenant"`
	// User owns threads within a tenant.
	User string `json:"user"`
	// Rights are what the caller's key or token grants; nil means [access.RoleUser]. They
	// belong to a request: tools and middleware, whose runs may outlive a key, and stores
	// do not see them.
	Rights *access.Rights `json:"-"`
}
