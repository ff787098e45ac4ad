package headers

import (
	"net/http"
	"strings"
)

// BearerToken returns the token (RFC 6750) of the header "Authorization: Bearer TOKEN", if it has one of at
// most limit bytes. The case of the scheme does not matter. Two headers have none: along
// the way they could be read as two different callers.
func BearerToken(r *http.Request, limit int) (token string, ok bool) {
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	token = strings.Trim(token, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > limit {
		return "", false
	}
	return token, true
}
