// Package api has one name of each kind.
package api

// Far is documented.
const Far Distance = 9

const near Distance = 1

// Default is documented.
var Default Named

// Distance is documented.
type Distance int

// String is documented.
func (d Distance) String() string { return "far" }

func (d Distance) double() Distance { return near + 2*d }

// Alias is documented.
type Alias = Distance

// Named is documented.
type Named interface {
	Name() string
	hidden()
}

type Visit func(*Box[int]) bool

// Box is documented.
type Box[T any] struct {
	Named
	Size   Distance
	inside T
}

func (b *Box[T]) Open() T { return b.inside }

func (b *Box[T]) shut() {}

// Make is documented.
func Make[T any](first T, more ...T) (*Box[T], error) { return nil, nil }
