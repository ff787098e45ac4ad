package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestRemoteLate kills us and the MCP server in the middle of calls, and starts the server
// only when we are back and have been waiting for it: no call is lost, and none is made twice.
func TestRemoteLate(t *testing.T) {
	t.Parallel()
	s := newRemoteServer(t, "http")
	var o map[string]any
	if err := json.Unmarshal([]byte(s.options()), &o); err != nil {
		t.Fatal(err)
	}
	o["late"] = true
	c := newCrew(t, newFile(t), "--mcp="+mustText(t, o)).begin()
	for n, there := 0, false; !there; n++ {
		k := c.talk("remote", fmt.Sprint("there-", n))
		k.starts("npm_echo {}")
		there = !strings.Contains(k.lastWords(), "There is no tool")
	}
	pay, job := c.talk("remote", "pay"), c.talk("remote", "job")
	pay.starts(`npm_pay {"ms":60000}`)
	job.starts(`npm_job {"ms":500}`)
	s.await("pay", 1)
	s.await("polled", 1) // the task's handle is committed
	c.p.kill()
	s.kill()
	c.p = c.start()
	s.start()
	for _, k := range []*talk{pay, job} {
		want := map[string]string{"pay": "the server died while this call was running", "job": "job done"}[k.thread]
		if got := k.lastWords(); !strings.Contains(got, want) {
			t.Errorf("%s: the model read %q, want %q", k.thread, got, want)
		}
	}
	if n, m := s.count("pay", "begun"), s.count("job", "begun"); n != 1 || m != 1 {
		t.Errorf("they were begun %d and %d times", n, m)
	}
}
