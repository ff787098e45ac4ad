package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
)

// docs/tools.md begins with commands to try with examples/tools, and with what they print.
// This test types them: every kind of tool answers, and the server is killed with kill -9 in
// the middle of an order, which the shop is asked for once.

// exampleShop are the lines of the example that start its MCP server. The test has it built
// already.
const exampleShop = "command: go\n    args: [run, ./shop, -takes, 10s]"

// typist types what the page shows, in a folder like that of the project.
type typist struct {
	*testing.T
	dir, addr string
	p         *process
	question  string // the id of the last question that was shown
}

// newTypist makes the folder. Its example differs in the server's address, and does not have
// to build the shop.
func newTypist(t *testing.T) *typist {
	t.Helper()
	for _, program := range []string{"bash", "curl", "grep"} {
		needs(t, program, "install it")
	}
	y := &typist{T: t, dir: t.TempDir(), addr: redistest.FreeAddr(t)}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	example := filepath.Join(y.dir, "examples", "tools")
	if err := os.MkdirAll(example, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "docs"), filepath.Join(y.dir, "docs")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"holdfast.yaml", "holdfast-api.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, "examples", "tools", name))
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(y.here(string(text)), exampleShop,
			fmt.Sprintf("command: %q\n    args: [-takes, 10s]", shopBinary), 1)
		if err := os.WriteFile(filepath.Join(example, name), []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		if name == "holdfast.yaml" && !strings.Contains(changed, shopBinary) {
			t.Fatalf("%s does not start its server with\n%s", name, exampleShop)
		}
	}
	return y
}

// here returns a text of the example with the address of this test's server.
func (y *typist) here(text string) string {
	return strings.ReplaceAll(text, "localhost:8080", y.addr)
}

// typed is a command, and what the page shows of what it prints.
type typed struct{ command, prints string }

var (
	consoleBlock = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")
	interruptID  = regexp.MustCompile(`int_[0-9a-z]{16,}`)
)

// commandsOf returns the commands of a section of a page. A command goes on in the next line
// while a quotation is open, and after a pipe.
func commandsOf(t *testing.T, page, section string) (commands []typed) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", page))
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(text), "\n## "+section+"\n")
	if !found {
		t.Fatalf("%s has no section %q", page, section)
	}
	part, _, _ = strings.Cut(part, "\n## ")
	for _, block := range consoleBlock.FindAllStringSubmatch(part, -1) {
		open := false
		for line := range strings.Lines(block[1]) {
			command, begins := strings.CutPrefix(line, "$ ")
			switch last := len(commands) - 1; {
			case !open && begins:
				commands = append(commands, typed{command: command})
			case open:
				commands[last].command += line
			case last < 0:
				t.Fatalf("%s: %q follows no command", section, line)
			default:
				commands[last].prints += line
				continue
			}
			so := commands[len(commands)-1].command
			open = strings.Count(so, "'")%2 == 1 || strings.HasSuffix(strings.TrimSpace(so), "|")
		}
	}
	return commands
}

// do does what a command says.
func (y *typist) do(c typed) {
	y.Helper()
	config := "--config=" + filepath.Join("examples", "tools", "holdfast.yaml")
	command, beside := strings.CutSuffix(strings.TrimSpace(c.command), " &")
	switch words := strings.Fields(command); {
	case words[0] == "go": // TestMain has built it
	case strings.HasPrefix(command, "kill -9 "):
		y.p.kill()
	case words[0] == "bin/holdfast" && beside:
		y.begin(config)
		for part := range strings.SplitSeq(strings.TrimSpace(c.prints), "…") {
			y.p.awaitOutput(func(text string) bool { return strings.Contains(text, part) }, nil)
		}
	case words[0] == "bin/holdfast":
		y.reads(c, strings.Replace(command, words[0], binary, 1))
	case beside:
		cmd := exec.Command("bash", "-c", y.here(command))
		cmd.Dir = y.dir
		if err := cmd.Start(); err != nil {
			y.Fatal(err)
		}
		y.Cleanup(func() { _ = cmd.Wait() }) // it is cut off
	default:
		y.reads(c, interruptID.ReplaceAllLiteralString(y.here(command), y.question))
	}
}

// begin starts the server.
func (y *typist) begin(args ...string) {
	y.Helper()
	cmd := exec.Command(binary, append([]string{"--addr=" + y.addr, "--demo-delay=1ms"}, args...)...)
	cmd.Dir = y.dir
	y.p = run(y.T, cmd)
	y.p.url = "http://" + y.addr
	y.p.ready()
}

// reads types a command that only reads until it prints what the page shows, since this test
// types faster than people, and others once.
func (y *typist) reads(c typed, command string) {
	y.Helper()
	once := strings.Contains(command, "-d '")
	wait.For(y.T, func() error {
		cmd := exec.Command("bash", "-c", command)
		cmd.Dir = y.dir
		out, err := cmd.Output()
		if id := interruptID.Find(out); id != nil {
			y.question = string(id)
		}
		if err == nil && y.same(c, string(out)) {
			return nil
		}
		err = fmt.Errorf("%s\n%w, prints\n%s\nand the page shows\n%s\n%s", command, err, out, c.prints, y.p.out)
		if once {
			y.Fatal(err)
		}
		return err
	})
}

// same compares what a command prints with the page. The results of calls come in any order;
// a line on the page may end early with "…".
func (y *typist) same(c typed, out string) bool {
	lines := func(text string) []string {
		all := strings.Split(strings.TrimSpace(interruptID.ReplaceAllString(text, "int_")), "\n")
		slices.Sort(all)
		return all
	}
	return slices.EqualFunc(lines(y.here(c.prints)), lines(out), func(want, got string) bool {
		start, shortened := strings.CutSuffix(want, "…")
		return want == got || shortened && strings.HasPrefix(got, start)
	})
}

// TestToolsExample types what the page shows, and counts what the shop was asked.
func TestToolsExample(t *testing.T) {
	t.Parallel()
	y := newTypist(t)
	commands := append(commandsOf(t, "docs/tools.md", "Try it"),
		commandsOf(t, "docs/tools.md", "What agents can use")...)
	for _, c := range commands {
		y.do(c)
	}
	if len(commands) < 13 {
		t.Errorf("only %d commands were found", len(commands))
	}
	noted, err := os.ReadFile(filepath.Join(y.dir, "examples", "tools", "shop.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(string(noted)), "\n"); len(lines) != 1 ||
		!strings.Contains(lines[0], "asked to order") {
		t.Errorf("the shop has noted\n%s", noted)
	}
}
