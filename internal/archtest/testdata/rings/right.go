package rings

func right(n int) int {
	return left(n)
}
