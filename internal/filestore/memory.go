package filestore

import (
	"sync"
	"time"
)

// leases are kept in memory. That is enough: the directory's lock is exclusive, so
// any process that was not announced to this one is gone.
type leases struct {
	mu    sync.Mutex
	until map[string]time.Time // by process
}

// hints are kept in memory, like leases: no other process can have the directory open.
type hints struct {
	mu  sync.Mutex
	all map[string]hint // by name
}

// hint is what this process has told itself.
type hint struct {
	data  []byte
	until time.Time
}
