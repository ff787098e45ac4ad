package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/server"
)

// Two tenants of one server: how a quiet one is served while a loud one keeps the server busy.
// A server of its own process is measured, on both stores.

// The two tenants, by the header that names them.
const (
	tenantHeader = "Tenant"
	tenantQuiet  = "quiet"
	tenantLoud   = "loud"
)

// The 99th percentile of what is measured is at most fairTimes what it is without the loud
// tenant, or fairFloor if that is more.
const (
	fairTimes = 3
	fairFloor = 50 * time.Millisecond
)

// fair reports whether the 99th percentile beside the loud tenant is within its bar.
func fair(quiet, beside []time.Duration) bool {
	return percentile(beside, 99) <= max(fairFloor, fairTimes*percentile(quiet, 99))
}

// measure is what came of a load: a row of a table, and whether its bars were held.
type measure interface {
	String() string
	held() bool
}

// onBothStores measures loads on both stores, each with a new server of a kind, and prints a
// row for each.
func onBothStores(
	kind, only string, redis *redisServer, loads []string, take func(p *process, load int) (measure, error),
) error {
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var missed []string
	for _, store := range []string{"embedded", "Redis"} {
		for n, load := range loads {
			if !strings.HasPrefix(store+" "+load, only) {
				continue
			}
			url := redis.url()
			if store == "embedded" {
				url = "file:" + filepath.Join(dir, strconv.Itoa(n))
			}
			m, err := besides(kind, url, func(p *process) (measure, error) { return take(p, n) })
			if err != nil {
				return fmt.Errorf("%s, %s: %w", store, load, err)
			}
			fmt.Printf("| %s | %s | %s |\n", store, load, m)
			if !m.held() {
				missed = append(missed, store+" with "+load)
			}
		}
	}
	if len(missed) > 0 {
		return errors.New("missed: " + strings.Join(missed, "; "))
	}
	return nil
}

// besides starts a server of a kind, whose processor is shared with whatever there is, and
// measures it.
func besides(kind, store string, take func(*process) (measure, error)) (measure, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	p, err := start("http://"+addr, nil, []string{self, "-serve", kind, "-addr", addr, "-store", store})
	if err != nil {
		return nil, err
	}
	defer p.stop()
	m, err := take(p)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, p.out.String())
	}
	return m, nil
}

// fourRuns makes four runs of the quiet tenant at a time, and returns how long each took.
func fourRuns(url, part string, n int) ([]time.Duration, error) {
	var four sync.WaitGroup
	took, failures := make([]time.Duration, 4), make([]error, 4)
	for i := range took {
		four.Go(func() {
			const form = `{"threadId":"%s-%d-%d","runId":"r","messages":[{"id":"u","role":"user","content":"hello"}]}`
			began := time.Now()
			code, _, err := post(context.Background(), url, tenantQuiet, fmt.Sprintf(form, part, n, i))
			if err == nil && code != http.StatusOK {
				err = fmt.Errorf("the quiet tenant was answered with %d", code)
			}
			took[i], failures[i] = time.Since(began), err
		})
	}
	four.Wait()
	return took, errors.Join(failures...)
}

// post makes a run and reads its stream to the end.
func post(ctx context.Context, url, tenant, body string) (code int, text string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/runs", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(tenantHeader, tenant)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	return res.StatusCode, string(all), err
}

// tenantsServer is the configuration of the server that is measured: it believes the header
// about the tenant.
func tenantsServer(store string, agent holdfast.Agent) server.Config {
	return server.Config{
		Store:       store,
		MultiTenant: func() bool { return true },
		Log:         slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Agents:      []holdfast.Agent{agent},
		Authenticate: func(r *http.Request) (holdfast.Principal, error) {
			return holdfast.Principal{Tenant: r.Header.Get(tenantHeader), User: "user"}, nil
		},
	}
}
