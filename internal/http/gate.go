package http

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/http/door"
	"github.com/holdfast-agents/holdfast/internal/http/exchange"
)

// A request must pass these before its route: the door, and then whose it is, as whom an
// operator reads, and whether the caller may do what the route is for.

// gate lets requests through to their routes.
type gate struct {
	door         door.Door
	bodies       *exchange.Receiver
	authenticate func(*http.Request) (holdfast.Principal, error)
	authorize    authorizer
	others       Others
	refusals     refusals
	log          *slog.Logger
}

// admit lets a request through to its route, if its headers allow that (see [door.Door]). One
// handler makes all checks, because a stream keeps the stack frames of its handlers as
// long as it is open.
func (g *gate) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.enters(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

// enters makes the checks of admit. If it reports false, the request has been answered.
func (g *gate) enters(w http.ResponseWriter, r *http.Request) bool {
	allowed := g.door.CORS(w.Header(), r)
	err := g.bodies.Admit(r)
	if err == nil {
		err = g.door.Check(r)
	}
	goOn := err == nil
	if goOn {
		goOn, err = g.door.Preflight(w, r, allowed)
	}
	if err != nil {
		exchange.Fail(g.log, w, r, err)
	}
	return goOn
}

// serve returns the handler of a route.
func (g *gate) serve(rt *route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, err := g.caller(rt, r)
		if err == nil && rt.action != "" {
			err = g.authorize(r.Context(), who, rt.action, "")
		}
		if err == nil && rt.noIfMatch != "" {
			err = noIfMatch(r, rt.noIfMatch)
		}
		if err == nil {
			err = rt.do(w, r, who)
		}
		if err != nil {
			exchange.Fail(g.log, w, r, err)
		}
	}
}

// caller returns on whose behalf a route is asked for: nobody's if it is open, and another
// user's if an operator names one.
func (g *gate) caller(rt *route, r *http.Request) (holdfast.Principal, error) {
	if rt.open {
		return holdfast.Principal{}, nil
	}
	who, err := g.authenticate(r)
	exchange.RecorderOf(r).Caller = who
	if err != nil {
		g.refusals.wait(r)
	}
	if err != nil || len(r.Header.Values(headerUser)) == 0 {
		return who, err
	}
	if !readsThreads(rt) {
		return who, exchange.Invalid(headerUser, "Other users' threads can only be read.",
			"Leave the header out, or use a key of that user.")
	}
	user, err := userIn(r)
	if err != nil {
		return who, err
	}
	if g.others == nil {
		return who, errNoOthers()
	}
	return g.others.ReadAs(r, who, user, param(r, "thread"))
}

// noIfMatch refuses a condition that the route would not check, so that nobody relies on
// it. why says what guards the request instead.
func noIfMatch(r *http.Request, why string) error {
	if len(r.Header.Values("If-Match")) == 0 {
		return nil
	}
	return exchange.Invalid("If-Match", "This route does not take If-Match.", "Leave it out: %s.", why)
}

// headerUser names, percent-encoded, the user whose threads an operator reads.
const headerUser = "Holdfast-User"

// userIn returns the user that the header names.
func userIn(r *http.Request) (string, error) {
	given := r.Header.Values(headerUser)
	user, err := url.PathUnescape(given[0])
	if err != nil || len(given) > 1 || user == "" {
		return "", exchange.Invalid(headerUser, headerUser+" does not name one user.",
			"Write the name percent-encoded, like anna%%40example.com.")
	}
	return user, exchange.CheckText(headerUser, user)
}

func errNoOthers() error {
	return holdfast.Errorf(codes.NotFound, "Nobody can read other users' threads here.").
		WithHint("GET /threads lists yours.")
}

// param returns a part of the path. Clients choose ids, which may contain a slash; the
// path then has %2F, and the router sees the path undecoded.
func param(r *http.Request, name string) string {
	v := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return v
	}
	decoded, err := url.PathUnescape(v)
	if err != nil {
		return v
	}
	return decoded
}

// methodsAt returns the methods that a path takes.
func methodsAt(r chi.Routes, u *url.URL) string {
	taken := slices.DeleteFunc(slices.Clone(exchange.StandardMethods), func(method string) bool {
		return !r.Match(chi.NewRouteContext(), method, cmp.Or(u.RawPath, u.Path))
	})
	return strings.Join(taken, ", ")
}

// notFound answers what has no route.
func notFound(_ http.ResponseWriter, r *http.Request, _ holdfast.Principal) error {
	return holdfast.Errorf(codes.NotFound, "There is no %s.", r.URL.Path).
		WithHint("POST /runs starts a run; GET /threads lists the threads; GET /openapi.json describes every route.")
}

// methodNotAllowed answers a method that a path does not take.
func methodNotAllowed(routes chi.Routes) endpoint {
	return func(w http.ResponseWriter, r *http.Request, _ holdfast.Principal) error {
		w.Header().Set("Allow", methodsAt(routes, r.URL))
		return holdfast.Errorf(codes.MethodNotAllowed, "%s does not take %s.", r.URL.Path, r.Method).
			WithHint("The Allow header names what it takes.")
	}
}
