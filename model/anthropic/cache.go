package anthropic

// The marks up to which the provider caches the prompt, of which a request may have four.
// A cached prefix is found if a mark stands within lookBack blocks behind the end of an
// earlier request.

// cache is a mark.
type cache struct {
	Type string `json:"type"`
}

func ephemeral() *cache { return &cache{Type: "ephemeral"} }

const (
	// lookBack is how many blocks before a mark the provider looks for an earlier one;
	// it is 20, and counting leaves some room.
	lookBack = 18
	// stride is how far apart the marks are in a turn that adds more.
	stride = 15
	// maxStrides is how many marks a turn may have besides its last.
	maxStrides = 2
)

// mark sets the marks: behind what never changes, which is the tools and the system text,
// behind the last block, and within a turn that has added many.
func mark(system []*content, tools []*tool, messages []*message) {
	switch {
	case len(system) > 0:
		system[len(system)-1].Cache = ephemeral()
	case len(tools) > 0:
		tools[len(tools)-1].Cache = ephemeral()
	}
	var blocks []*content
	before := 0 // the number of blocks of the request before this one
	for i, m := range messages {
		// An answer and what follows it are new.
		if m.Role == assistant && i >= len(messages)-2 {
			before = len(blocks)
		}
		blocks = append(blocks, m.Content...)
	}
	at := len(blocks) - 1
	put(blocks, at)
	for n := 0; n < maxStrides && at-before > lookBack; n++ {
		at -= stride
		put(blocks, at)
	}
}

// put sets a mark at a block, or before it: thinking cannot have one.
func put(blocks []*content, at int) {
	for ; at >= 0; at-- {
		if blocks[at].thinking == nil {
			blocks[at].Cache = ephemeral()
			return
		}
	}
}
