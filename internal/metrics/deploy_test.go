package metrics_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// root is the root of the repository.
const root = "../.."

func readYAML(t *testing.T, path string, v any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Load(text, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

var (
	metricName = regexp.MustCompile(`\b(holdfast_[a-z_]+)(\{[^}]*\})?`)
	labelName  = regexp.MustCompile(`([a-z_]+)\s*(?:=|!=|=~|!~)\s*"`)
	suffix     = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// checkExpr checks that an expression uses only metrics and labels that the server has.
func checkExpr(t *testing.T, where, expr string, known map[string]metric) {
	t.Helper()
	for _, found := range metricName.FindAllStringSubmatch(expr, -1) {
		name, cut := found[1], suffix.FindString(found[1])
		m, ok := known[name]
		if !ok && cut != "" {
			m, ok = known[strings.TrimSuffix(name, cut)]
			ok = ok && m.kind == "histogram"
		} else if ok && m.kind == "histogram" {
			t.Errorf("%s: %s is a histogram and has no value of its own", where, name)
		}
		if !ok {
			t.Errorf("%s: there is no metric %s", where, name)
			continue
		}
		for _, l := range labelName.FindAllStringSubmatch(found[2], -1) {
			if !slices.Contains(append([]string{"instance", "job", "le"}, m.labels...), l[1]) {
				t.Errorf("%s: %s has no label %s", where, name, l[1])
			}
		}
	}
	if strings.Count(expr, "(") != strings.Count(expr, ")") {
		t.Errorf("%s: parentheses do not match: %s", where, expr)
	}
}

// TestAlerts: each rule uses metrics that the server has, and says what to do.
func TestAlerts(t *testing.T) {
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert       string            `yaml:"alert"`
				Expr        string            `yaml:"expr"`
				Labels      map[string]string `yaml:"labels"`
				Annotations map[string]string `yaml:"annotations"`
			} `yaml:"rules"`
		} `yaml:"groups"`
	}
	readYAML(t, "deploy/alerts.yml", &file)
	known := registered(t)
	seen := map[string]bool{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			checkExpr(t, r.Alert, r.Expr, known)
			if seen[r.Alert] || r.Expr == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" ||
				len(r.Annotations["description"]) < 60 ||
				!strings.Contains(r.Annotations["runbook_url"], "/docs/operations.md#") {
				t.Errorf("the alert %q is not complete, or is there twice", r.Alert)
			}
			seen[r.Alert] = true
		}
	}
	for _, name := range []string{"HoldfastDown", "HoldfastStoreUnavailable", "HoldfastCheckpointErrors",
		"HoldfastTakeoverBurst", "HoldfastSlowFirstDelta", "HoldfastRunsFailing"} {
		if !seen[name] {
			t.Errorf("there is no alert %s", name)
		}
	}
}

// TestDashboard: each panel uses metrics that the server has, and every metric of ours
// is on some panel.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "deploy/grafana/dashboards/holdfast.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		UID    string `json:"uid"`
		Title  string `json:"title"`
		Panels []struct {
			ID         int    `json:"id"`
			Title      string `json:"title"`
			Datasource struct {
				UID string `json:"uid"`
			} `json:"datasource"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	var source struct {
		Datasources []struct {
			UID string `yaml:"uid"`
			URL string `yaml:"url"`
		} `yaml:"datasources"`
	}
	readYAML(t, "deploy/grafana/provisioning/datasources/prometheus.yml", &source)
	known := registered(t)
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		ids[p.ID] = true
		if len(p.Targets) > 0 && p.Datasource.UID != source.Datasources[0].UID {
			t.Errorf("%s: the data source %q is not provisioned", p.Title, p.Datasource.UID)
		}
		for _, target := range p.Targets {
			checkExpr(t, p.Title, target.Expr, known)
		}
	}
	if d.UID != "holdfast" || d.Title != "Holdfast" {
		t.Errorf("the dashboard is %q, %q", d.UID, d.Title)
	}
	for name := range known {
		if !strings.Contains(string(text), name) {
			t.Errorf("no panel shows %s", name)
		}
	}
}

type composeFile struct {
	Services map[string]composeService `yaml:"services"`
	Volumes  map[string]any            `yaml:"volumes"`
}

type composeBuild struct {
	Context string            `yaml:"context"`
	Args    map[string]string `yaml:"args"`
}

type composeService struct {
	Build       composeBuild      `yaml:"build"`
	Image       string            `yaml:"image"`
	Command     []string          `yaml:"command"`
	Environment map[string]string `yaml:"environment"`
	Ports       []string          `yaml:"ports"`
	Volumes     []string          `yaml:"volumes"`
	DependsOn   any               `yaml:"depends_on"`
	Healthcheck struct {
		Test []string `yaml:"test"`
	} `yaml:"healthcheck"`
}

// mounts returns the service's files, by their path in the container.
func (s *composeService) mounts(t *testing.T, volumes map[string]any) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, v := range s.Volumes {
		parts := strings.Split(v, ":")
		from, to := parts[0], parts[1]
		if !strings.HasPrefix(from, "./") {
			if _, ok := volumes[from]; !ok {
				t.Errorf("the volume %s is not declared", from)
			}
			continue
		}
		if _, err := os.Stat(filepath.Join(root, from)); err != nil {
			t.Errorf("a mounted file is missing: %v", err)
		}
		if parts[len(parts)-1] != "ro" {
			t.Errorf("%s is mounted writable", from)
		}
		out[to] = from
	}
	return out
}

// TestCompose: everything that the file refers to exists, nothing is published beyond
// this machine, and Redis keeps what it acknowledges.
func TestCompose(t *testing.T) {
	var file composeFile
	readYAML(t, "docker-compose.yml", &file)
	pinned := regexp.MustCompile(`:v?\d+\.\d+\.\d+(-[a-z]+)?$`)
	for name, s := range file.Services {
		s.mounts(t, file.Volumes)
		if s.Build.Context == "" && !pinned.MatchString(s.Image) {
			t.Errorf("%s: the image %q is not pinned to a version", name, s.Image)
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: the port %s is published beyond this machine", name, p)
			}
		}
		switch on := s.DependsOn.(type) {
		case map[string]any:
			for other := range on {
				if len(file.Services[other].Healthcheck.Test) == 0 {
					t.Errorf("%s waits for %s to be healthy, which has no health check", name, other)
				}
			}
		case []any:
			for _, other := range on {
				if _, ok := file.Services[other.(string)]; !ok {
					t.Errorf("%s depends on %v, which does not exist", name, other)
				}
			}
		}
	}
	redis := file.Services["redis"]
	for _, flags := range [][]string{{"--appendonly", "yes"}, {"--appendfsync", "always"},
		{"--maxmemory-policy", "noeviction"}} {
		i := slices.Index(redis.Command, flags[0])
		if i < 0 || i+1 >= len(redis.Command) || redis.Command[i+1] != flags[1] {
			t.Errorf("redis is not started with %s", strings.Join(flags, " "))
		}
	}
	if len(redis.Ports) > 0 || !slices.ContainsFunc(redis.Volumes, func(v string) bool {
		return strings.HasSuffix(v, ":/data")
	}) {
		t.Error("redis is published, or has no volume")
	}
	server := file.Services["server"]
	if server.Environment["HOLDFAST_STORE"] != "redis://redis:6379/0" ||
		!slices.Contains(server.Ports, "127.0.0.1:8080:8080") {
		t.Errorf("the server: %+v", server)
	}
}

// TestComposeWiring: Prometheus scrapes the server and reads the rules, Grafana
// reads the data source and the dashboard, from where they are mounted.
func TestComposeWiring(t *testing.T) {
	var file composeFile
	readYAML(t, "docker-compose.yml", &file)
	var scrape struct {
		Rules []string `yaml:"rule_files"`
		Jobs  []struct {
			Name   string `yaml:"job_name"`
			Path   string `yaml:"metrics_path"`
			Static []struct {
				Targets []string `yaml:"targets"`
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	readYAML(t, "deploy/prometheus.yml", &scrape)
	prometheus := file.Services["prometheus"]
	mounts := prometheus.mounts(t, file.Volumes)
	for _, rules := range scrape.Rules {
		if mounts[rules] != "./deploy/alerts.yml" {
			t.Errorf("the rules %s are not mounted", rules)
		}
	}
	if i := slices.IndexFunc(prometheus.Command, func(s string) bool {
		return strings.HasPrefix(s, "--config.file=")
	}); i < 0 || mounts[strings.TrimPrefix(prometheus.Command[i], "--config.file=")] != "./deploy/prometheus.yml" {
		t.Error("Prometheus does not read deploy/prometheus.yml")
	}
	job := scrape.Jobs[0]
	if job.Name != "holdfast" || job.Path != "/metrics" ||
		!slices.Equal(job.Static[0].Targets, []string{"server:8080"}) {
		t.Errorf("the scrape job: %+v", job)
	}
	var source struct {
		Datasources []struct {
			URL string `yaml:"url"`
		} `yaml:"datasources"`
	}
	readYAML(t, "deploy/grafana/provisioning/datasources/prometheus.yml", &source)
	if source.Datasources[0].URL != "http://prometheus:9090" ||
		!slices.Contains(prometheus.Ports, "127.0.0.1:9090:9090") {
		t.Errorf("the data source: %+v", source)
	}
	var dashboards struct {
		Providers []struct {
			Options struct {
				Path string `yaml:"path"`
			} `yaml:"options"`
		} `yaml:"providers"`
	}
	readYAML(t, "deploy/grafana/provisioning/dashboards/holdfast.yml", &dashboards)
	grafana := file.Services["grafana"]
	if from := grafana.mounts(t, file.Volumes)[dashboards.Providers[0].Options.Path]; from !=
		"./deploy/grafana/dashboards" {
		t.Errorf("the dashboards are read from where %q is mounted", from)
	}
	if grafana.Environment["GF_AUTH_ANONYMOUS_ORG_ROLE"] != "Viewer" {
		t.Error("visitors of Grafana have more rights than viewers")
	}
}

// TestDockerfile: the image is small and does not run as root, knows its version, and its
// program is its own health check, as in the compose file.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"FROM scratch", "USER 65532:65532", "VOLUME /data", "EXPOSE 8080", `ENTRYPOINT ["/holdfast"]`,
		"RUN CGO_ENABLED=0 go build -trimpath", "ARG VERSION=\n", "HEALTHCHECK ",
	} {
		if !strings.Contains(string(text), "\n"+line) {
			t.Errorf("the Dockerfile has no line that begins with %q", line)
		}
	}
	var file composeFile
	readYAML(t, "docker-compose.yml", &file)
	server := file.Services["server"]
	if !slices.Equal(server.Healthcheck.Test, []string{"CMD", "/holdfast", "healthcheck"}) {
		t.Errorf("the server's health check in the compose file is %q", server.Healthcheck.Test)
	}
	if !regexp.MustCompile(`(?m)^HEALTHCHECK .* CMD \["/holdfast", "healthcheck"\]$`).Match(text) {
		t.Error("the image's health check is not the program's own")
	}
	if _, ok := server.Build.Args["VERSION"]; !ok || server.Build.Context != "." {
		t.Errorf("the compose file builds with %+v", server.Build)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)
	if version == nil || !strings.Contains(string(text), "FROM golang:"+string(version[1])+" AS build") {
		t.Errorf("the image is not built with go.mod's version of Go, %q", version)
	}
}

// TestComposeConfig asks Docker itself, if it is installed with compose.
func TestComposeConfig(t *testing.T) {
	if exec.CommandContext(t.Context(), "docker", "compose", "version").Run() != nil {
		t.Skip("docker compose is not installed; TestCompose has checked the file")
	}
	cmd := exec.CommandContext(t.Context(), "docker", "compose", "config", "--quiet")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("docker compose config: %v\n%s", err, out)
	}
}
