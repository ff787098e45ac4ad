package config_test

import (
	"maps"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/config"
)

// TestModelEnvironment: variables are filled in where they stand; each that is not set is a
// mistake with its place, and no value is ever in one.
func TestModelEnvironment(t *testing.T) {
	f, err := config.Parse("a.yaml", []byte(`agents:
  - name: a
    baseURL: https://${HOST}/v1/
    headers:
      Authorization: Bearer ${TOKEN}
      X-Title: us, ${WHO}${WHO} for $5
    proxy: http://${HOST}:3128
`), known(), noFiles)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env  map[string]string
		want string // the error
	}{
		"all": {map[string]string{"HOST": "example.com", "TOKEN": "s3cret${WHO}", "WHO": "me"}, ""},
		"one": {map[string]string{"HOST": "example.com", "TOKEN": "s3cret"},
			"a.yaml:6:16: headers.X-Title needs the environment variable WHO, which is not set"},
		"no host": {map[string]string{"TOKEN": "s3cret", "WHO": "me"},
			"a.yaml:3:14: baseURL needs the environment variable HOST, which is not set\na.yaml:7:12: proxy needs " +
				"the environment variable HOST, which is not set"},
		"none": {nil, "a.yaml:3:14: baseURL needs the environment variable HOST, which is not set\n" +
			"a.yaml:5:22: headers.Authorization needs the environment variable TOKEN, which is not set\n" +
			"a.yaml:6:16: headers.X-Title needs the environment variable WHO, which is not set\n" +
			"a.yaml:7:12: proxy needs the environment variable HOST, which is not set"},
		"no URL": {map[string]string{"HOST": "s3cret host", "TOKEN": "s3cret", "WHO": "me"},
			"a.yaml:3:14: baseURL is not a URL; write it in full, like http://localhost:11434/v1\na.yaml:7:12: proxy " +
				"is not a URL; write it in full, like http://proxy:3128, or write direct for none"},
		"a query": {map[string]string{"HOST": "h?k=s3cret", "TOKEN": "s3cret", "WHO": "me"},
			"a.yaml:3:14: baseURL must not contain a user, a password, a ? or a #; name the key's environment " +
				"variable in apiKeyEnv\na.yaml:7:12: proxy is not a URL; write it in full, like http://proxy:3128, " +
				"or write direct for none"},
	} {
		var a asked
		err := f.Agents[0].Models[0].Decode(&a, func(name string) string { return c.env[name] })
		switch {
		case c.want != "" && (err == nil || err.Error() != c.want):
			t.Errorf("%s: got\n%v\nwant\n%s", name, err, c.want)
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want == "" && (a.BaseURL != "https://example.com/v1" || a.Proxy != "http://example.com:3128" ||
			!maps.Equal(a.Headers, map[string]string{"Authorization": "Bearer s3cret${WHO}",
				"X-Title": "us, meme for $5"})):
			t.Errorf("%s: %q, %q", name, a.BaseURL, a.Headers)
		}
	}
	if got := askedOf(t, f.Agents[0].Models[0]).Headers["X-Title"]; got != "us, WHOWHO for $5" {
		t.Errorf("the file now has %q", got)
	}
}
