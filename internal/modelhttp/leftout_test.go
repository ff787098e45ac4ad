package modelhttp_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/agenttest"
	"github.com/holdfast-agents/holdfast/internal/modelhttp"
)

// TestSayLeftOut: what a model cannot take of the newest messages is said once; what was
// left out before is not said again.
func TestSayLeftOut(t *testing.T) {
	t.Parallel()
	c := &modelhttp.Client{Provider: "p", Model: "m"}
	req := &holdfast.ModelRequest{
		Messages: []holdfast.Message{
			{Role: holdfast.RoleUser},
			{Role: holdfast.RoleAssistant},
			{Role: holdfast.RoleUser},
		},
	}
	old, now := modelhttp.LeftPart{Message: 0, Kind: "video"}, modelhttp.LeftPart{Message: 2, Kind: "audio"}
	for name, c2 := range map[string]struct {
		left    []modelhttp.LeftPart
		attempt int
		want    string
	}{
		"nothing": {nil, 0, "[]"}, "before": {[]modelhttp.LeftPart{old}, 0, "[]"},
		"again": {[]modelhttp.LeftPart{now}, 1, "[]"},
		"now": {[]modelhttp.LeftPart{old, now, now}, 0,
			"[holdfast.content_left_out {\"content\":[\"audio\"],\"model\":\"m\",\"provider\":\"p\"}]"},
	} {
		ctx, recorded := agenttest.Context(t)
		req.Attempt = c2.attempt
		c.SayLeftOut(ctx, req, c2.left)
		said := []string{}
		for _, n := range recorded.Notices() {
			said = append(said, n.Name+" "+string(n.Value))
		}
		if fmt.Sprint(said) != c2.want {
			t.Errorf("%s: %s, want %s", name, said, c2.want)
		}
	}
}
