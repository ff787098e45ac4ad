package http

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/threads"
)

// Other users' threads, for operators: the header that names the user, and which routes take
// it. They can be read and nothing else.

// headerUser names, percent-encoded, the user whose threads an operator reads.
const headerUser = "Holdfast-User"

// readsThreads reports whether a route only reads threads.
func readsThreads(r *route) bool {
	return r.method == http.MethodGet && !r.open && (strings.HasPrefix(r.path, "/threads") || r.path == "/questions")
}

// asUser returns the endpoint of a route, which serves an operator who names a user as that
// user.
func asUser(rt route) endpoint {
	if rt.open {
		return rt.do
	}
	reads := readsThreads(&rt)
	return func(h *handler, w http.ResponseWriter, r *http.Request, who holdfast.Principal) error {
		if len(r.Header.Values(headerUser)) == 0 {
			return rt.do(h, w, r, who)
		}
		if !reads {
			return invalid(
				headerUser,
				"Other users' threads can only be read.",
				"Leave the header out, or use a key of that user.",
			)
		}
		user, err := userIn(r)
		if err == nil {
			who, err = asOther(h, r, who, user)
		}
		if err != nil {
			return err
		}
		return rt.do(h, w, r, who)
	}
}

// userIn returns the user that the header names.
func userIn(r *http.Request) (string, error) {
	given := r.Header.Values(headerUser)
	user, err := url.PathUnescape(given[0])
	if err != nil || len(given) > 1 || user == "" {
		return "", invalid(
			headerUser,
			headerUser+" does not name one user.",
			"Write the name percent-encoded, like anna%%40example.com.",
		)
	}
	return user, checkText(headerUser, user)
}

// asOther returns as whom the caller reads another user's threads.
func asOther(h *handler, r *http.Request, who holdfast.Principal, user string) (holdfast.Principal, error) {
	if h.Others == nil {
		return who, errNoOthers()
	}
	return h.Others.ReadAs(r, who, user, param(r, "thread"))
}

func errNoOthers() error {
	return holdfast.Errorf(codes.NotFound, "Nobody can read other users' threads here.").
		WithHint("GET /threads lists yours.")
}

// threadsOfAll is GET /threads?user=*.
func threadsOfAll(h *handler, r *http.Request, who holdfast.Principal, page threadPage) ([]threads.Info, error) {
	if h.Others == nil {
		return nil, errNoOthers()
	}
	return h.Others.ThreadsOfAll(r, who, page.before, page.limit)
}
