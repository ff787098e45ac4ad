package simulate

// schedule is a world, and the clients in it.
type schedule struct {
	world   *World
	clients []*client
	asides  []*client // of side runs
	list    []choice  // the memory of choices
}
