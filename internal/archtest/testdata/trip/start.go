// Package trip is what the test about the trip of a takeover is tested with: its
// files are named after how they are reached.
package trip

type engine struct{}

type parcel struct {
	label string
	inner *parcel
}

func (e *engine) start(p *parcel) {
	e.next(p.inner)
	value(p.label)
	go elsewhere(p)
}

func (e *engine) next(p *parcel) {
	argument(p)
	p.receiver()
	q, _ := e.wrapped(p)
	result(q)
	literal(&crate{holds: p})
	engineOnly(e)
}

// wrapped hands out a parcel that holds the one it was given.
func (e *engine) wrapped(p *parcel) (*parcel, error) {
	return &parcel{inner: p}, nil
}
