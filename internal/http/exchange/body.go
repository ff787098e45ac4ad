package exchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast-agents/holdfast/internal/strictjson"
)

// ReadObject reads a body that is one JSON object into v. An empty body means {}. An
// unknown member is an error: a request to change or delete something must not be half
// understood. Errors never repeat values.
func (in *Receiver) ReadObject(w http.ResponseWriter, r *http.Request, v any, known ...string) error {
	if r.ContentLength == 0 {
		return nil
	}
	body, err := in.Read(w, r)
	if err != nil {
		return err
	}
	return in.Turns.Decode(r, body, func() error { return DecodeObject(body, v, known...) })
}

// DecodeObject decodes what ReadObject has read.
func DecodeObject(body []byte, v any, known ...string) error {
	body = bytes.TrimSpace(body)
	switch {
	case len(body) == 0:
		return nil
	case body[0] != '{':
		return Invalid("", "The body is not a JSON object.", "%s", knows(known))
	}
	shape := &strictjson.Shape{
		Kind:    strictjson.Object,
		Closed:  true,
		Hint:    knows(known),
		Members: map[string]*strictjson.Shape{},
	}
	for _, name := range known {
		shape.Members[name] = nil
	}
	var refused *strictjson.Error
	if _, err := strictjson.Check(body, shape); errors.As(err, &refused) {
		return Invalid(refused.Place, refused.Message, "%s", refused.Hint)
	}
	var kind *json.UnmarshalTypeError
	switch err := json.Unmarshal(body, v); {
	case errors.As(err, &kind):
		found, _, _ := strings.Cut(kind.Value, " ")
		return Invalid(kind.Field, fmt.Sprintf("%s has the wrong type: found %s.", kind.Field, found),
			"Correct this member and send the request again.").Wrap(err)
	case err != nil:
		return Invalid("", "The body cannot be read.", "%s", knows(known)).Wrap(err)
	}
	return nil
}

func knows(members []string) string {
	return "Send an object with " + strings.Join(members, ", ") + "."
}

// maxID bounds the ids and labels that clients choose, in bytes; the same bound as in
// the input of a run.
const maxID = 256

// CheckText refuses an id or a label that is too long or cannot be displayed. An empty
// one counts as absent.
func CheckText(field, text string) error {
	switch {
	case len(text) > maxID:
		return Invalid(field, fmt.Sprintf("%s is longer than %d bytes.", field, maxID), "Send a shorter one.")
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return Invalid(field, field+" holds control characters.", "Send printable characters only.")
	}
	return nil
}

// IfMatch returns the ETag that the thread must have; empty for any. It ignores the W/
// that compressing proxies put before an ETag: ours identifies a commit, not bytes.
func IfMatch(r *http.Request) (string, error) {
	given := r.Header.Values("If-Match")
	if len(given) == 0 {
		return "", nil
	}
	tag := strings.TrimSpace(given[0])
	if tag == "*" && len(given) == 1 {
		return "", nil
	}
	tag = strings.TrimPrefix(tag, "W/")
	if inner, quoted := strings.CutPrefix(tag, `"`); quoted {
		tag = strings.TrimSuffix(inner, `"`)
	}
	if len(given) > 1 || tag == "" || len(tag) > maxID || strings.ContainsAny(tag, "\", \t") {
		return "", Invalid("If-Match", "If-Match does not hold a single ETag.",
			"Send the ETag of GET /threads/{thread}, or leave it out.")
	}
	return tag, nil
}
