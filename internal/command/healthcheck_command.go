package command

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// healthCommand asks a running server whether it can serve: for containers, which have
// no other program to ask with.
func healthCommand(args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	addr := cmp.Or(getenv("HOLDFAST_ADDR"), "localhost:8080")
	flags := flag.NewFlagSet("holdfast healthcheck", flag.ContinueOnError)
	flags.StringVar(&addr, "addr", addr, "where the server listens (HOLDFAST_ADDR)")
	if err := parseCommand(flags, args, stderr); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("the address %q cannot be used: write host:port", addr)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	client := &http.Client{Timeout: 5 * time.Second}
	res, err := client.Get("http://" + net.JoinHostPort(host, port) + "/readyz")
	if err != nil {
		return fmt.Errorf("%w: it does not answer: %w", errNotReady, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		var body struct {
			Error struct{ Code, Message string }
		}
		if json.NewDecoder(io.LimitReader(res.Body, 1<<16)).Decode(&body) != nil || body.Error.Code == "" {
			return fmt.Errorf("%w: status %d", errNotReady, res.StatusCode)
		}
		return fmt.Errorf("%w: status %d: %s: %s", errNotReady, res.StatusCode, body.Error.Code, body.Error.Message)
	}
	fmt.Fprintln(stdout, "ready")
	return nil
}
