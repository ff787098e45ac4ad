package predict

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// read reads arguments in pieces of n bytes, and returns what was shown.
func read(args string, n int, watched ...string) (shown []string) {
	a, all := Of(watched...), []byte(args)
	for at := 0; at < len(args); {
		at = min(at+n, len(args))
		for _, v := range a.Read(all[:at]) {
			shown = append(shown, v.Name+"="+string(v.JSON))
		}
	}
	return shown
}

// TestRead: what is shown of arguments that come one byte at a time.
func TestRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{`{"a":"x"}`, `a="x"`},
		{` { "b" : 1 , "a" : "x" } `, `a="x"`},
		{`{"a":""}`, `a=""`},
		{`{"a":-1.5e3}`, `a=-1.5e3`},
		{`{"a":tru}`, ``},
		{`{"a":true,"b":"a","c":null}`, `a=true c=null`},
		{`{"a":[1,{"b":"]}\""}],"c":{}}`, `a=[1,{"b":"]}\""}] c={}`},
		{`{"a":[1,,2]}`, ``},
		{`{"\u0061":"x"}`, `a="x"`},
		{`{"b":{"a":"x"},"c":"y"}`, `c="y"`},
		{`{"a":"ab\u00e4ö\ud83d\ude00"}`, `a="a" a="ab\u00e4ö\ud83d\ude00"`},
		{`{"a":"\ud83d\ude00"}`, `a="\ud83d\ude00"`},
		{`{"a":"\ud83dx"}`, ``},
		{`{"a":"\ude00"}`, ``},
		{`{"a":"\q"}`, ``},
		{"{\"a\":\"\n\"}", ``},
		{"{\"a\":\"\xff\"}", ``},
		{`{"a":"x"`, `a="x"`},
		{`{"a":{"b":`, ``},
		{`[{"a":1}]`, ``},
		{`"a"`, ``},
		{`{"a" "x"}`, ``},
		{`{"a":"x","a":"y"}`, `a="x" a="y"`},
		{`{"a":` + strings.Repeat("[", 101) + strings.Repeat("]", 101) + `}`, ``},
	} {
		if got := strings.Join(read(c.args, 1, "a", "c"), " "); got != c.want {
			t.Errorf("of %s is shown %s, want %s", c.args, got, c.want)
		}
	}
}

// TestGrowing: a text is shown again when it has grown by a sixteenth, so all that is sent of it is at most
// seventeen times as long, and of one that is too long only the beginning.
func TestGrowing(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 15, 16, 100, 5_000, MaxBytes - 2, MaxBytes + 1} {
		for _, piece := range []int{1, 7, 4096} {
			content := strings.Repeat("ö", size/2) + strings.Repeat("x", size%2)
			shown, sent := read(`{"a":"`+content+`"}`, piece, "a"), 0
			for i, s := range shown {
				var text string
				if err := json.Unmarshal([]byte(s[2:]), &text); err != nil || !strings.HasPrefix(content, text) {
					t.Fatalf("%d bytes: %.100s", size, s)
				}
				if last := i == len(shown)-1; last && text != content && size <= MaxBytes-2 {
					t.Errorf("%d bytes: the last that is shown has %d", size, len(text))
				}
				sent += len(s) - 2
			}
			if most := 18*min(size, MaxBytes) + 2_500; sent > most {
				t.Errorf("%d bytes in pieces of %d: %d are sent, at most %d", size, piece, sent, most)
			}
		}
	}
}

// TestWhateverComes: each value that is shown is JSON, and the last one of each argument is the argument's,
// however the arguments are cut. Pieces that say the same show the same.
func TestWhateverComes(t *testing.T) {
	t.Parallel()
	values := []string{`""`, `"text"`, `"\"\\\n"`, `"\ud83d\ude00 😀"`, `12`, `true`, `null`, `[]`, `[{"a":"}"}]`,
		`{"b":[1,2]}`}
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		var members []string
		want := map[string]string{}
		for i := range random.IntN(5) {
			name, v := fmt.Sprintf("n%d", i), values[random.IntN(len(values))]
			members = append(members, fmt.Sprintf("%q: %s", name, v))
			want[name] = v
		}
		args := "{" + strings.Join(members, ", ") + "}"
		got := map[string]string{}
		for _, s := range read(args, 1+random.IntN(4), "n0", "n1", "n2", "n3", "n4") {
			name, v, _ := strings.Cut(s, "=")
			if !json.Valid([]byte(v)) {
				t.Fatalf("seed %d: of %s is shown %s", seed, args, v)
			}
			got[name] = v
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("seed %d: of %s is shown %s, want %s", seed, args, got, want)
		}
	}
}

// FuzzRead: what is no JSON shows nothing that is none.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{`{"a":"x"}`, `{"a":[1,"\ud83d\ude00"],"c":{}}`, `{"a":"\u00`, `{"a":1,}`} {
		f.Add(seed, 1)
	}
	f.Fuzz(func(t *testing.T, args string, n int) {
		for _, s := range read(args, 1+n&15, "a", "c") {
			if _, v, _ := strings.Cut(s, "="); !json.Valid([]byte(v)) {
				t.Errorf("of %q is shown %q", args, v)
			}
		}
	})
}
