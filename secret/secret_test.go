package secret_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/secret"
)

// TestSecret: however a secret is printed, logged or encoded, alone or in something else,
// its text does not appear.
func TestSecret(t *testing.T) {
	const text = "hunter2"
	s := secret.New(text)
	nested := struct {
		Name  string
		Key   secret.Text
		Keys  []secret.Text
		ByRef *secret.Text
		own   secret.Text // fmt calls no methods of fields that are not exported
		owns  map[string]secret.Text
	}{"n", s, []secret.Text{s}, &s, s, map[string]secret.Text{"k": s}}
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	logger.Info("m", "secret", s, "nested", nested)
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "secret", s, "nested", nested)
	encoded, err := json.Marshal(map[string]any{"a": s, "b": nested})
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%v %+v %#v %s %q %x %d", s, s, s, s, s, s, s) +
		fmt.Sprintf("%v %+v %#v", nested, nested, nested) +
		fmt.Sprint(&s) + string(encoded) + log.String() + fmt.Errorf("with %w %v", errors.New("x"), s).
		Error()
	for _, verb := range []string{"%s", "%q", "%x", "%X", "%p", "%d"} {
		shown += fmt.Sprintf(verb, nested)
	}
	if strings.Contains(shown, text) || strings.Contains(shown, fmt.Sprintf("%x", text)) {
		t.Errorf("the text is shown: %s", shown)
	}
	if !strings.Contains(shown, secret.Shown) || s.Reveal() != text {
		t.Errorf("it is not there at all: %s", shown)
	}
	for _, none := range []secret.Text{{}, secret.New("")} {
		if !none.IsZero() || fmt.Sprint(none) != "" || none.Reveal() != "" || s.IsZero() {
			t.Errorf("an empty secret is %q", fmt.Sprint(none))
		}
	}
}
