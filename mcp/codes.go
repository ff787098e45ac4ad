package mcp

// The codes of the errors that calls come to, for the log and for clients.
const (
	codeUnreachable = "mcp_unreachable"
	codeRefused     = "mcp_refused"
	codeUnknown     = "mcp_outcome_unknown" // of a tool that must not be called twice
	codeNoAnswer    = "mcp_no_answer"       // of one that may
	codeAnswer      = "mcp_answer_unreadable"
)

// shorten returns at most limit bytes of a text, in whole characters.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && text[limit]&0xC0 == 0x80 {
		limit--
	}
	return text[:limit] + "…"
}
