package thread

import "strings"

// The head's ETag is the id of its last commit. Clients that have read a thread send it back, so
// that they change nothing that they have not seen. A commit that changes nothing which can be
// seen, such as the one that archives a log, must not stop them: its id begins with the ETag
// before it, and clients are told the beginning only.

// unseen divides the ETag that clients are told from what follows it in the id of a commit.
const unseen = "~"

// PublicETag returns what clients are told of a head's ETag.
func PublicETag(etag string) string {
	public, _, _ := strings.Cut(etag, unseen)
	return public
}

// UnseenCommit returns the id of a commit on a head with the ETag that changes nothing which
// clients see. id is one that no other commit has.
func UnseenCommit(etag, id string) string { return PublicETag(etag) + unseen + id }
