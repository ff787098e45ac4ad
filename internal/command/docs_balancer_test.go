package command

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
)

// recipe returns the block of a kind with which the page tells a balancer about threads.
func recipe(t *testing.T, kind string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "### A balancer that knows threads\n")
	_, text, _ = strings.Cut(text, "```"+kind+"\n")
	text, _, found := strings.Cut(text, "```\n")
	if !found {
		t.Fatalf("the page has no recipe for %s", kind)
	}
	return text
}

// TestBalancersOnThePage: with the recipes of the page, a balancer that is installed sends all requests of a thread
// to one server, and not all threads to the same.
func TestBalancersOnThePage(t *testing.T) {
	for _, b := range []struct {
		program, listens string
		// whole returns what the program reads, with the recipe in it, and arguments the command line.
		whole     func(recipe, dir string) string
		arguments []string
		bodies    bool // it finds threads in bodies
	}{
		{"nginx", "listen 80;", func(recipe, dir string) string {
			var temporary strings.Builder
			for _, of := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
				fmt.Fprintf(&temporary, "%s_temp_path %s/%s;\n", of, dir, of)
			}
			return fmt.Sprintf("daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/log; events {}\n"+
				"http { access_log off;\n%[2]s%[3]s}\n", dir, temporary.String(), recipe)
		}, []string{"-c"}, false},
		{"haproxy", "bind :80", func(recipe, _ string) string { return recipe }, []string{"-db", "-f"}, true},
	} {
		t.Run(b.program, func(t *testing.T) {
			program, err := exec.LookPath(b.program)
			if err != nil {
				if program = "/usr/sbin/" + b.program; exec.Command(program, "-v").Run() != nil {
					t.Skip(err)
				}
			}
			addr, dir := freeAddr(t), t.TempDir()
			text := strings.Replace(recipe(t, b.program), b.listens, strings.Fields(b.listens)[0]+" "+addr+
				b.listens[len(strings.TrimSuffix(b.listens, ";")):], 1)
			for i, name := range []string{"a", "b"} {
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					_, _ = io.WriteString(w, name)
				}))
				defer s.Close()
				text = strings.Replace(text, fmt.Sprintf("10.0.0.%d:8080", i+1), s.Listener.Addr().String(), 1)
			}
			file := filepath.Join(dir, "config")
			if err := os.WriteFile(file, []byte(b.whole(text, dir)), 0o600); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			cmd := exec.Command(program, append(b.arguments, file)...)
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = cmd.Process.Signal(syscall.SIGTERM)
				_ = cmd.Wait()
				if t.Failed() {
					t.Log(out.String())
				}
			}()
			at := balanced{t, "http://" + addr}
			wait.For(t, func() error {
				_, err := at.try("GET", "/threads", "", "")
				return err
			})
			at.check(b.bodies)
		})
	}
}

// balanced is a balancer before two servers, each of which answers with its name.
type balanced struct {
	*testing.T
	url string
}

// try makes a request, and returns which server has answered.
func (b balanced) try(method, path, header, body string) (string, error) {
	req, err := http.NewRequestWithContext(b.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	if header != "" {
		req.Header.Set("Holdfast-Thread", header)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	name, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, name)
	}
	return string(name), err
}

// check makes all kinds of requests of several threads.
func (b balanced) check(bodies bool) {
	b.Helper()
	met := map[string]bool{}
	for n := range 24 {
		id := fmt.Sprintf("thread %d/ü", n)
		escaped, body := url.PathEscape(id), fmt.Sprintf(`{"messages": [], "threadId": %q}`, id)
		chat := strings.Replace(body, "threadId", "id", 1)
		requests := [][4]string{
			{"GET", "/threads/" + escaped + "/stream", "", ""},
			{"GET", "/threads/" + escaped, "", ""},
			{"GET", "/threads/" + escaped + "/runs/r/events?after=1", "", ""},
			{"GET", "/copilotkit/threads/" + escaped + "/messages", "", ""},
			{"POST", "/copilotkit/agent/a/stop/" + escaped, "", ""},
			{"GET", "/ai-sdk/a/" + escaped, "", ""},
			{"GET", "/ai-sdk/a/" + escaped + "/stream?sdk=7", "", ""},
			{"POST", "/ai-sdk/a", escaped, chat},
			{"POST", "/runs", escaped, body},
			{"POST", "/agents/a/runs", escaped, body},
		}
		if bodies {
			requests = append(requests, [4]string{"POST", "/runs", "", body}, [4]string{"POST", "/ai-sdk/a", "", chat})
		}
		first := ""
		for _, r := range requests {
			name, err := b.try(r[0], r[1], r[2], r[3])
			if err != nil {
				b.Fatal(r, err)
			}
			if first == "" {
				first = name
			}
			if name != first {
				b.Errorf("%v is answered by %s, and others of its thread by %s", r, name, first)
			}
		}
		met[first] = true
	}
	if len(met) != 2 {
		b.Errorf("all threads are at %v", met)
	}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestEnvoyOnThePage: Envoy is not run. Its recipe is YAML, and what the first route finds in paths is
// what the header has that the second one looks at.
func TestEnvoyOnThePage(t *testing.T) {
	var c struct {
		Routes []struct {
			Match struct {
				Regex struct{ Regex string } `yaml:"safe_regex"`
			}
			Route struct {
				Policy []struct {
					Header struct {
						Name    string `yaml:"header_name"`
						Rewrite struct {
							Pattern      struct{ Regex string }
							Substitution string
						} `yaml:"regex_rewrite"`
					}
				} `yaml:"hash_policy"`
			}
		}
	}
	if err := yaml.Unmarshal([]byte(recipe(t, "yaml")), &c); err != nil || len(c.Routes) != 2 {
		t.Fatalf("%d routes, %v", len(c.Routes), err)
	}
	first, second := c.Routes[0], c.Routes[1].Route.Policy[0].Header.Name
	rewrite := first.Route.Policy[0].Header.Rewrite
	if second != "holdfast-thread" || rewrite.Substitution != `\1` {
		t.Errorf("%s, %s", second, rewrite.Substitution)
	}
	whole, part := regexp.MustCompile("^(?:"+first.Match.Regex.Regex+")$"), regexp.MustCompile(rewrite.Pattern.Regex)
	for path, want := range map[string]string{
		"/threads/a%2Fb/stream":              "a%2Fb",
		"/threads/t?children=delete":         "t",
		"/copilotkit/threads/t/messages?a=b": "t",
		"/copilotkit/agent/a/stop/t":         "t",
		"/ai-sdk/a/t/stream":                 "t",
		"/ai-sdk/a":                          "",
		"/copilotkit/agent/a/run":            "",
		"/threads":                           "",
		"/threads?user=*":                    "",
		"/runs":                              "",
	} {
		if alone, _, _ := strings.Cut(path, "?"); whole.MatchString(alone) != (want != "") {
			t.Errorf("the first route takes %s: %t", path, want == "")
		}
		if got := part.ReplaceAllString(path, "$1"); want != "" && got != want {
			t.Errorf("%s is of the thread %q, want %q", path, got, want)
		}
	}
}
