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
func limitParam(r *http.Request) (int, error) { return numberParam(r, "limit", defaultLimit, maxLimit) }

// numberParam returns a number from 1 to most of a request's query, or what it is without.
func numberParam(r *http.Request, name string, without, most int) (int, error) {
	s := r.URL.Query().Get(name)
	if s == "" {
		return without, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > most {
		return 0, holdfast.Errorf(codes.InvalidInput, "%s must be a number from 1 to %d.", name, most).
			WithHint("Leave it out to get %d.", without)
	}
	return n, nil
}
