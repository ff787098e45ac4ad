package command

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/internal/testkit/redistest"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/redis/go-redis/v9"
)

// TestDataFormat: the banner and the commands say which data format the servers of a shared
// store write, and who reads what.
func TestDataFormat(t *testing.T) {
	url := redistest.Start(t).URL()
	ctx, cancel := context.WithCancel(t.Context())
	said := map[string]string{}
	look := func() {
		defer cancel()
		for _, command := range []string{"check", "inspect"} {
			code, out, errOut := runCommand(t, env(nil), command, url)
			said[command] = fmt.Sprint(out, errOut, code)
		}
	}
	banner, errOut := &signalWriter{want: "recovery", seen: look}, &bytes.Buffer{}
	if code := run(ctx, []string{"--addr=localhost:0", "--store=" + url, "--data-format=newest"}, env(nil), banner,
		errOut); code != exitOK {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	if !strings.Contains(banner.String(), fmt.Sprintf("  data        format %d\n", thread.Format)) {
		t.Errorf("the banner is\n%s", banner.String())
	}
	want := regexp.MustCompile(fmt.Sprintf(`the servers write data format %[1]d\nserver p_?\S+ reads up to %[1]d\n`,
		thread.Format))
	for command, text := range said {
		if !want.MatchString(text) {
			t.Errorf("%s says %s", command, text)
		}
	}
	if len(said) != 2 {
		t.Error("nothing was looked at")
	}
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	next := redis.NewClient(o)
	defer next.Close()
	if err := next.HSet(t.Context(), "hf:{hf:leases}:formats", "write", thread.Format+1).Err(); err != nil {
		t.Fatal(err)
	}
	errOut.Reset()
	code := run(t.Context(), []string{"--addr=localhost:0", "--store=" + url}, env(nil), banner, errOut)
	if !strings.Contains(errOut.String(),
		fmt.Sprintf("other servers write data of format %d into this store, and this version reads up to "+
			"%d: start a newer version", thread.Format+1, thread.Format)) || code != exitFailed {
		t.Errorf("exit %d: %s", code, errOut)
	}
	errOut.Reset()
	if code := run(t.Context(), []string{"--addr=localhost:0", "--store=memory:"},
		env(map[string]string{"HOLDFAST_DATA_FORMAT": "7"}), banner, errOut); code == exitOK ||
		!strings.Contains(errOut.String(), "use 1 to 2 or newest") {
		t.Errorf("exit %d: %s", code, errOut)
	}
}
