package metrics_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/metrics"
	"github.com/holdfast-agents/holdfast/observe"
)

// full returns the metrics of a server on which everything has happened once.
func full() *metrics.Metrics {
	m := metrics.New([]holdfast.Agent{
		{
			Name:      "a",
			Tools:     []holdfast.Tool{named("look")},
			Toolsets:  []holdfast.Toolset{serverNamed{name: "github"}},
			Model:     modelNamed("one"),
			Fallbacks: []holdfast.Model{modelNamed("two")},
		},
	})
	at := holdfast.Iteration{Agent: "a"}
	m.Observer().ToolCalled(at, "look", observe.ToolSuccess, 0)
	m.Observer().Notified(at, "acme.notice")
	m.Observer().HookFailed(at, "acme.guard", "tool")
	m.RequestDone("/runs", http.MethodPost, http.StatusOK, 0)
	return m
}

type metric struct {
	kind   string
	labels []string
}

// registered returns what a scrape can show, by name.
func registered(t *testing.T) map[string]metric {
	t.Helper()
	families, err := full().Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]metric{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "holdfast_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		slices.Sort(labels)
		out[f.GetName()] = metric{strings.ToLower(f.GetType().String()), labels}
	}
	return out
}

// TestNames: names and help texts follow Prometheus's conventions.
func TestNames(t *testing.T) {
	problems, err := testutil.GatherAndLint(full().Registry())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestDocs: the table in docs/metrics.md has every metric, and no other.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	word := regexp.MustCompile("`([a-z_]+)`")
	documented := map[string]metric{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if !strings.HasPrefix(line, "| `holdfast_") || len(cells) != 7 {
			continue
		}
		var labels []string
		for _, m := range word.FindAllStringSubmatch(cells[3], -1) {
			labels = append(labels, m[1])
		}
		slices.Sort(labels)
		documented[strings.Trim(cells[1], " `")] = metric{strings.TrimSpace(cells[2]), labels}
		if len(strings.TrimSpace(cells[4])) < 10 {
			t.Errorf("the meaning is missing: %s", line)
		}
	}
	got := registered(t)
	for name, m := range got {
		if d := documented[name]; d.kind != m.kind || !slices.Equal(d.labels, m.labels) {
			t.Errorf("docs/metrics.md has %s as %q %q; it is %q %q", name, d.kind, d.labels, m.kind, m.labels)
		}
	}
	for name := range documented {
		if _, ok := got[name]; !ok {
			t.Errorf("docs/metrics.md has %s, which does not exist", name)
		}
	}
}

// TestErrorTypesAreDocumented: every error_type is in the documentation's table.
func TestErrorTypesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range series(t, full()) {
		if kind, ok := strings.CutPrefix(name, `holdfast_checkpoint_errors_total{error_type="`); ok {
			if !strings.Contains(string(text), "\n| `"+strings.TrimSuffix(kind, `"}`)+"` |") {
				t.Errorf("docs/metrics.md does not explain %s", name)
			}
		}
	}
}

// TestCodes: every code of package codes is a label value of its own; a code
// that an extension invents is not.
func TestCodes(t *testing.T) {
	codes := allCodes(t)
	m := metrics.New(nil)
	for _, code := range append(slices.Sorted(maps.Keys(codes)), "made_up_by_an_extension") {
		m.Observer().RunEnded(holdfast.Iteration{}, "error", code, 0)
	}
	got := series(t, m)
	for code := range codes {
		if name := fmt.Sprintf(`holdfast_run_errors_total{code=%q}`, code); got[name] != "1" {
			t.Errorf("%s is %s: add the code to codes in labels.go", name, cmp.Or(got[name], "not there"))
		}
	}
	if got[`holdfast_run_errors_total{code="other"}`] != "1" {
		t.Error("an extension's code is not counted as other")
	}
}

// allCodes returns the values of the constants of package codes.
func allCodes(t *testing.T) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../codes/codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.ValueSpec); ok && len(s.Values) == 1 {
			codes[strings.Trim(s.Values[0].(*ast.BasicLit).Value, `"`)] = true
		}
		return true
	})
	if len(codes) < 20 {
		t.Fatalf("only %d codes were found in codes.go", len(codes))
	}
	return codes
}

// TestRulesOnThePage: the expressions and alerts in docs/metrics.md use metrics and labels
// that the server has.
func TestRulesOnThePage(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	known := registered(t)
	blocks := regexp.MustCompile("(?ms)^```(promql|yaml)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 2 {
		t.Errorf("%d blocks, want one alert and one list of rules", len(blocks))
	}
	for _, b := range blocks {
		if b[1] == "promql" {
			checkExpr(t, "docs/metrics.md", b[2], known)
			continue
		}
		var rules []struct {
			Alert string `yaml:"alert"`
			Expr  string `yaml:"expr"`
		}
		if err := yaml.Load([]byte(b[2]), &rules); err != nil || len(rules) == 0 {
			t.Fatalf("%d rules, %v in\n%s", len(rules), err, b[2])
		}
		for _, r := range rules {
			if r.Expr == "" {
				t.Errorf("%s has no expression", r.Alert)
			}
			checkExpr(t, r.Alert, r.Expr, known)
		}
	}
}
