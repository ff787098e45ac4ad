package http

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/codes"
)

// TestPatchState: the kind of a patch is said by the media type of its body, and one that is none is refused before
// anything is read.
func TestPatchState(t *testing.T) {
	t.Parallel()
	s := serve(t, eventful(), nil)
	for _, c := range []struct {
		kind, body string
		status     int
		says       string
	}{
		{typeJSONPatch, `[{"op":"add","path":"/a","value":1}]`, http.StatusOK, ""},
		{typeMergePatch + "; charset=utf-8", `{"a":null}`, http.StatusOK, ""},
		{typeMergePatch, `[1]`, http.StatusOK, ""},
		{typeJSON, `{"a":1}`, http.StatusUnsupportedMediaType, codes.UnsupportedMediaType},
		{typeJSONPatch, `{"a":1}`, http.StatusBadRequest, "no JSON Patch"},
		{typeJSONPatch, `[{"op":"add","path":"a","value":1}]`, http.StatusBadRequest, "does not begin with /"},
		{typeJSONPatch, `[{"op":"add","path":"/a"}]`, http.StatusBadRequest, "has no value"},
		{typeMergePatch, `{"a":1`, http.StatusBadRequest, "not JSON"},
		{typeMergePatch, `{"a":1,"a":2}`, http.StatusBadRequest, "twice"},
	} {
		res, body := do(t, "PATCH", s.URL+"/threads/t/state", c.body, "Content-Type", c.kind)
		if res.StatusCode != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s %s: %d %s", c.kind, c.body, res.StatusCode, body)
		}
	}
}
