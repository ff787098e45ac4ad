package rings

func left(n int) int {
	if n == 0 {
		return 0
	}
	return right(n - 1)
}
