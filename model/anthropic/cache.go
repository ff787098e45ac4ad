package anthropic

// The marks up to which the provider caches the prompt, of which a request may have four. The
// part that a request reads from the cache ends at one of its marks where an earlier request
// had one too, or up to 20 blocks before it. So there is always a mark where the request
// before ended, however many blocks the turn has added since.

// cache is a mark.
type cache struct {
	Type string `json:"type"`
}

func ephemeral() *cache { return &cache{Type: "ephemeral"} }

// mark sets the marks: behind the tools, behind the system text, behind the last block, and
// where the request before ended. If there are facts of the frontend among the messages, the
// next run repeats only what stands before them, so there is a mark there, too; and instead of
// that behind the tools, which the one behind the system text covers.
func (w *writer) mark(system []*content, tools []*tool) {
	facts := w.stable < w.blocks
	if len(tools) > 0 && (!facts || len(system) == 0) {
		tools[len(tools)-1].Cache = ephemeral()
	}
	if len(system) > 0 {
		system[len(system)-1].Cache = ephemeral()
	}
	var blocks []*content
	before := 0 // the number of blocks of the request before this one
	for i, m := range w.messages {
		// An answer and what follows it are new.
		if m.Role == assistant && i >= len(w.messages)-2 {
			before = len(blocks)
		}
		blocks = append(blocks, m.Content...)
	}
	if facts && before <= w.stable { // a run begins: of the one before, this is left in its place
		before = w.words
	}
	put(blocks, len(blocks)-1)
	put(blocks, before-1)
	if facts {
		put(blocks, w.stable-1)
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
