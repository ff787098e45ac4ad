package config

import (
	"errors"
	"maps"
	"testing"
)

// TestSettings: the settings of the file are checked by their owner, and a mistake has its
// place.
func TestSettings(t *testing.T) {
	known := Known{Models: []string{"demo"}, Settings: map[string]func(string) error{
		"recover": func(v string) error {
			if v != "on" && v != "off" {
				return errors.New("use on or off")
			}
			return nil
		},
		"maxRuns": func(string) error { return nil },
	}}
	const agents = "agents: [{name: a, model: demo}]\n"
	file, err := Parse("f", []byte(agents+"settings: {recover: off, maxRuns: 12}\n"), known, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"recover": "off", "maxRuns": "12"}; !maps.Equal(file.Settings, want) {
		t.Errorf("%v", file.Settings)
	}
	_, err = Parse("f", []byte(agents+"settings:\n  recover: maybe\n  maxRun: 3\n  maxRuns: [1]\n"), known, nil)
	const want = `f:3:12: recover cannot be "maybe"; use on or off
f:4:3: unknown key "maxRun"; did you mean "maxRuns"?
f:5:12: maxRuns must be a single value, not a list`
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}
