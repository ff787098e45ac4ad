package store

// ThreadKey names a thread. There is no way to name a thread without its
// tenant.
type ThreadKey struct {
	// Tenant is the tenant that the thread belongs to.
	Tenant string
	// Thread is the thread's id, unique within the tenant.
	Thread string
}

// String returns "tenant/thread", for logs.
func (k ThreadKey) String() string { return k.Tenant + "/" + k.Thread }

// Fence says who may write to a thread: an epoch raised at each acquisition,
// and a random nonce. It is compared for equality, because a store that loses
// its last writes in a failover hands out the same epoch twice.
type Fence struct {
	// Epoch is raised by one at each acquisition; 0 before the first.
	Epoch uint64 `json:"epoch"`
	// Nonce is random and new at each acquisition.
	Nonce string `json:"nonce"`
}

// TagLength is the number of characters of a nonce that a cursor carries.
const TagLength = 6

// Tag returns the first characters of the nonce, which mark the records
// written under this fence.
func (f Fence) Tag() string {
	if len(f.Nonce) <= TagLength {
		return f.Nonce
	}
	return f.Nonce[:TagLength]
}
