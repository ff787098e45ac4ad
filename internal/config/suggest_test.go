package config

import "testing"

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"tools", "tools", 0}, {"tool", "tools", 1}, {"toosl", "tools", 1},
		{"kitten", "sitting", 3}, {"größe", "grösse", 2}, {"ca", "abc", 3},
	} {
		if got := distance([]rune(tt.a), []rune(tt.b)); got != tt.want {
			t.Errorf("%s, %s: got %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := distance([]rune(tt.b), []rune(tt.a)); got != tt.want {
			t.Errorf("%s, %s: got %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}

func TestClosest(t *testing.T) {
	known := []string{"calculate", "lookup", "wait", "name", "model"}
	for word, want := range map[string]string{
		"lokup": "lookup", "Lookup": "lookup", "clculat": "calculate", "nmae": "name", "wiat": "wait",
		"teleport": "", "x": "", "": "", "game": "name",
	} {
		if got := closest(word, known); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}
