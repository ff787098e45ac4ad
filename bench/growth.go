package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// growthLimit is how much more iteration 1,000 may write than iteration 10.
const growthLimit = 1.2

// measureGrowth runs a thousand iterations on one thread and compares how much the server
// writes to disk around the twentieth and around the last. The store already holds
// another thread, so that its tree has the same depth at both points.
func measureGrowth() error {
	dir, binary, err := build()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p, err := launch(0, nil, binary, "--addr", "{addr}", "--store", "file:"+filepath.Join(dir, "growth"),
		"--demo-delay=1ms", "--max-iterations=1100")
	if err != nil {
		return err
	}
	defer p.stop()
	if _, err := written(p.url, "before", 200, p.cmd.Process.Pid); err != nil {
		return err
	}
	at, err := written(p.url, "measured", 1000, p.cmd.Process.Pid)
	if err != nil {
		return err
	}
	const window = 40
	if len(at) < 1000 {
		return fmt.Errorf("only %d iterations were seen", len(at))
	}
	early := float64(at[window]-at[0]) / window
	late := float64(at[999]-at[999-window]) / window
	fmt.Printf("written to disk per iteration: %.1f KB around iteration 20, %.1f KB around iteration "+
		"980: %.2f x (limit %g)\n", early/1024, late/1024, late/early, growthLimit)
	if late/early > growthLimit {
		return errors.New("an iteration writes more when the thread is longer")
	}
	return nil
}

// written runs this many steps and returns, for the start of each, how many bytes the
// process has written to disk by then.
func written(url, thread string, steps, pid int) ([]int64, error) {
	body := fmt.Sprintf(
		`{"threadId":%q,"runId":"r","protocolVersion":"1.0","messages":[{"id":"u","role":"user",`+
			`"content":"plan %d steps"}]}`,
		thread,
		steps,
	)
	res, err := http.Post(url+"/runs", "application/json", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var at []int64
	finished := false
	scan := bufio.NewScanner(res.Body)
	scan.Buffer(nil, 16<<20)
	for scan.Scan() {
		line := scan.Bytes()
		if bytes.Contains(line, []byte(`"type":"TEXT_MESSAGE_START"`)) {
			n, err := diskWrites(pid)
			if err != nil {
				return nil, err
			}
			at = append(at, n)
		}
		finished = finished || bytes.Contains(line, []byte(`"RUN_FINISHED"`))
	}
	if !finished {
		return nil, errors.New("the run did not finish")
	}
	return at, scan.Err()
}

// diskWrites returns write_bytes of /proc/PID/io: how much the process caused to be
// written to disk.
func diskWrites(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return 0, fmt.Errorf("this bench needs Linux: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			return strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		}
	}
	return 0, errors.New("/proc/PID/io has an unknown form")
}
