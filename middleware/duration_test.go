package middleware_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-agents/holdfast/middleware"
)

func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{`"30s"`: 30 * time.Second, `"1h30m"`: 90 * time.Minute,
		`"0s"`: 0} {
		var d middleware.Duration
		if err := json.Unmarshal([]byte(text), &d); err != nil || time.Duration(d) != want {
			t.Errorf("%s: got %s, %v", text, time.Duration(d), err)
		}
		again := middleware.Duration(1)
		if data, err := json.Marshal(d); err != nil || json.Unmarshal(data, &again) != nil || again != d {
			t.Errorf("%s was written as %s, %v", text, data, err)
		}
	}
	for _, text := range []string{`"soon"`, `"30"`, `"-1s"`, `""`, `30`} {
		var d middleware.Duration
		if err := json.Unmarshal([]byte(text), &d); err == nil ||
			text != `30` && !strings.Contains(err.Error(), "write it with its unit, like 30s or 2m") {
			t.Errorf("%s: got %v", text, err)
		}
	}
}
