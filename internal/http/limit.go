package http

import (
	"net/http"
	"strconv"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
)

// How many threads or checkpoints a list has.
const (
	defaultLimit = 50
	maxLimit     = 200
)

// limitParam returns how many entries of a list a request asks for.
func limitParam(r *http.Request) (int, error) {
	s := r.URL.Query().Get("limit")
	if s == "" {
		return defaultLimit, nil
	}
	limit, err := strconv.Atoi(s)
	if err != nil || limit < 1 || limit > maxLimit {
		return 0, holdfast.Errorf(codes.InvalidInput, "limit must be a number from 1 to %d.", maxLimit).
			WithHint("Leave it out to get %d.", defaultLimit)
	}
	return limit, nil
}
