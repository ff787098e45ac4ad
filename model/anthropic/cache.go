package anthropic

// The marks up to which the provider caches the prompt, of which a request may have four.
// What a request reads from the cache ends at one of its marks where an earlier request had
// one too, or up to 20 blocks before it. So there is always a mark where the request before
// ended, however many blocks the turn has added since.

// cache is a mark.
type cache struct {
	Type string `json:"type"`
}

func ephemeral() *cache { return &cache{Type: "ephemeral"} }

// mark sets the marks: behind the tools, behind the system text, behind the last block, and
// where the request before ended.
func mark(system []*content, tools []*tool, messages []*message) {
	if len(tools) > 0 {
		tools[len(tools)-1].Cache = ephemeral()
	}
	if len(system) > 0 {
		system[len(system)-1].Cache = ephemeral()
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
	put(blocks, len(blocks)-1)
	put(blocks, before-1)
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
