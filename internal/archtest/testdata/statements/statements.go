// Package statements is what the gauge of a function's statements is tested with.
package statements

type counter struct{ n int }

func (c *counter) packed(a, b, d, e int) int {
	if a, b := b, a; a > b {
		c.n++
	}
	c.n, a, b = c.n+a+b, d, e
	defer func() { c.n++; c.n-- }()
	return c.n
}

func nested(n int) int {
	double := func() int {
		m := n
		m *= 2
		return m
	}
	if n == 0 {
		return 1
	}
	return double()
}

var held = func(kind string) int {
	n := 1
	switch kind {
	case "one":
		return n
	default:
		return n + 1
	}
}

func short(n int) int {
	for i := range n {
		n += i
	}
	return n
}
