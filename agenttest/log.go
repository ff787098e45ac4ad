package agenttest

import (
	"io"
	"log/slog"
	"regexp"
	"strings"
	"sync"
)

// logbook keeps lines, and passes them on to the test's output.
type logbook struct {
	out   io.Writer
	mu    sync.Mutex
	lines []string
	ends  map[string]chan struct{} // by run, closed when its end is in the log
}

// runEnded is the line with which the server is done with a run.
var runEnded = regexp.MustCompile(`msg="run ended" .*\brun=(\S+)`)

func (l *logbook) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := strings.TrimSuffix(string(b), "\n")
	l.lines = append(l.lines, line)
	if m := runEnded.FindStringSubmatch(line); m != nil {
		select {
		case <-l.end(m[1]): // it was there before
		default:
			close(l.end(m[1]))
		}
	}
	return l.out.Write(b)
}

// end is closed when the end of the run is in the log; the caller holds the lock.
func (l *logbook) end(run string) chan struct{} {
	if l.ends[run] == nil {
		l.ends[run] = make(chan struct{})
	}
	return l.ends[run]
}

// ended is closed when the end of the run is in the log.
func (l *logbook) ended(run string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end(run)
}

// mortalLog drops what a dead process says.
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

// withoutTimes leaves out what is another in each test.
func withoutTimes(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == "took") {
		return slog.Attr{}
	}
	return a
}
