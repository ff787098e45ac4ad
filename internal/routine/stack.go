package routine

// WarmStack makes the calling goroutine's stack as large as it will have to be, in one step and
// while there is little on it. Otherwise it is doubled two or three times, each time deeper
// down, and copying a deep stack takes longer than a command of the store. It is for
// goroutines that decide a request, make a run or call a tool: they need 16 KB.
func WarmStack() { _ = stack(0) }

// WarmLargeStack is WarmStack for a goroutine that needs 32 KB.
func WarmLargeStack() { _ = largeStack(0) }

//go:noinline
func stack(at int) byte {
	var room [9 << 10]byte
	room[at] = 1
	return room[len(room)-1-at]
}

//go:noinline
func largeStack(at int) byte {
	var room [17 << 10]byte
	room[at] = 1
	return room[len(room)-1-at]
}
