// Package rings is what the test about rings of files is tested with.
package rings

// tower stands on a floor.
type tower struct {
	name string
	base floor
}

func (t *tower) build() {
	t.base = newFloor(t)
	t.base.level++
	t.base.stones = stones(t.base.level)
	_ = alone
}
