package mcp

import "sync"

// events are signals of a connection to its server's manager. None of them waits.
type events struct {
	relist chan struct{} // the list of tools has changed
	stale  chan error    // the connection should be replaced
	gone   chan error    // it must be
	// following is closed when changes of the list of tools are told from now on, or never.
	following  chan struct{}
	followOnce sync.Once
}

func newEvents() *events {
	return &events{
		relist:    make(chan struct{}, 1),
		stale:     make(chan error, 1),
		gone:      make(chan error, 1),
		following: make(chan struct{}),
	}
}

func (e *events) follow() { e.followOnce.Do(func() { close(e.following) }) }

func signal[T any](c chan<- T, v T) {
	select {
	case c <- v:
	default: // one is enough
	}
}

func (e *events) replace(err error, gone bool) {
	if gone {
		signal(e.gone, err)
	} else {
		signal(e.stale, err)
	}
}
