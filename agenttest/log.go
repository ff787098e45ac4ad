package agenttest

import (
	"io"
	"log/slog"
	"regexp"
	"strings"
	"sync"
)

// logbook keeps lines and copies them to the test's output.
type logbook struct {
	out   io.Writer
	mu    sync.Mutex
	lines []string
	ends  map[string]chan struct{} // by run, closed when its end is in the log
}

// runEnded matches the server's last line about a run.
var runEnded = regexp.MustCompile(`msg="run ended" .*\brun=(\S+)`)

func (l *logbook) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := strings.TrimSuffix(string(b), "\n")
	l.lines = append(l.lines, line)
	if m := runEnded.FindStringSubmatch(line); m != nil {
		select {
		case <-l.end(m[1]): // the end has been logged before
		default:
			close(l.end(m[1]))
		}
	}
	return l.out.Write(b)
}

// end returns a channel that is closed once the run's end is in the log; the caller
// holds the lock.
func (l *logbook) end(run string) chan struct{} {
	if l.ends[run] == nil {
		l.ends[run] = make(chan struct{})
	}
	return l.ends[run]
}

// ended returns a channel that is closed once the run's end is in the log.
func (l *logbook) ended(run string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end(run)
}

// mortalLog drops what a dead process logs.
type mortalLog struct {
	w    io.Writer
	life life
}

func (l *mortalLog) Write(b []byte) (int, error) {
	if l.life.over() {
		return len(b), nil
	}
	return l.w.Write(b)
}

// withoutTimes removes what differs from test to test.
func withoutTimes(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == "took") {
		return slog.Attr{}
	}
	return a
}
