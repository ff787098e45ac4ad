package rings

type floor struct {
	level  int
	stones int
	owner  string
}

func stones(level int) int {
	return 3 * level
}

// newFloor refers back to what stands on it.
func newFloor(t *tower) floor {
	return floor{owner: t.name}
}
