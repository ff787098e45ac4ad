// Package literals is what the rule about packed literals is tested with.
package literals

type point struct{ a, b, c, d, e int }

var packed = point{a: 1, b: 2, c: 3, d: 4, e: 5}

var bare = []*point{
	{1, 2, 3, 4, 5},
}

var shared = map[string]int{
	"a": 1,
	"b": 2,
	"c": 3, "d": 4,
	"e": 5,
}

var begun = point{a: 1,
	b: 2,
	c: 3,
	d: 4,
	e: 5,
}

var few = point{a: 1, b: 2, c: 3, d: 4}

var meant = point{
	a: 1,
	b: 2,
	c: 3,
	d: 4,
	e: 5,
}

// numbers have no names, so nobody looks for one of them.
var numbers = []int{1, 2, 3, 4, 5, 6}
