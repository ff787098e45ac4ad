package main

// The client: it makes runs, checks that every token comes exactly once, and notes when.

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// seen is what a client saw of one or more runs.
type seen struct {
	tokens  int
	latency []time.Duration // of each token, from the model's write to the client's read
	first   []time.Duration // of each run, from the request to the first token
	runs    int
	took    []time.Duration // of each run
}

func (s *seen) add(o seen) {
	s.tokens += o.tokens
	s.runs += o.runs
	s.latency = append(s.latency, o.latency...)
	s.first = append(s.first, o.first...)
	s.took = append(s.took, o.took...)
}

// client makes runs on a server.
type client struct {
	url  string
	http *http.Client
}

func newClient(url string) *client {
	return &client{url: url, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2000}}}
}

var (
	contentMark  = []byte(`"TEXT_MESSAGE_CONTENT"`)
	deltaMark    = []byte(`"delta":"`)
	finishedMark = []byte(`"RUN_FINISHED"`)
)

// run makes one run and checks that every token came exactly once.
func (c *client) run(ctx context.Context, thread string, s script) (seen, error) {
	begun := time.Now()
	out := seen{runs: 1}
	finished := false
	err := c.stream(ctx, thread, s, func(line []byte) bool {
		finished = finished || bytes.Contains(line, finishedMark)
		if !bytes.Contains(line, contentMark) {
			return true
		}
		now := time.Now()
		_, text, _ := bytes.Cut(line, deltaMark)
		if s.result > 0 {
			words, _, _ := bytes.Cut(text, []byte{'"'})
			out.tokens += bytes.Count(words, []byte{' '})
			return true
		}
		for ; len(text) >= tokenLength && text[0] != '"'; text = text[tokenLength:] {
			sent, err := strconv.ParseInt(strings.TrimSpace(string(text[:tokenLength])), 16, 64)
			if err != nil {
				return true
			}
			if out.tokens++; out.tokens == 1 {
				out.first = append(out.first, now.Sub(begun))
			}
			out.latency = append(out.latency, now.Sub(time.Unix(0, sent)))
		}
		return true
	})
	out.took = append(out.took, time.Since(begun))
	switch {
	case err != nil:
		return out, err
	case !finished:
		return out, errors.New("a run did not finish")
	case out.tokens != s.tokens+s.rounds*s.said:
		return out, fmt.Errorf("%d tokens came, want %d", out.tokens, s.tokens+s.rounds*s.said)
	}
	return out, nil
}

// stream posts a run and passes each line to f until f returns false.
func (c *client) stream(ctx context.Context, thread string, s script, f func(line []byte) bool) error {
	body := fmt.Sprintf(`{"threadId":%q,"runId":"r","protocolVersion":"1.0","messages":[{"id":"u",`+
		`"role":"user","content":%q}]}`, thread, s)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/runs", strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", res.StatusCode)
	}
	scan := bufio.NewScanner(res.Body)
	scan.Buffer(make([]byte, 64<<10), 16<<20)
	for scan.Scan() {
		if !f(scan.Bytes()) {
			return nil
		}
	}
	return scan.Err()
}

// firstToken repeatedly asks the model itself for one token, and returns the median time,
// in ms.
func firstToken(url string) (float64, error) {
	var took []time.Duration
	for range 300 {
		begun := time.Now()
		body := fmt.Sprintf(`{"messages":[{"content":%q}]}`, script{tokens: 1})
		res, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			return 0, err
		}
		scan := bufio.NewScanner(res.Body)
		scan.Scan()
		took = append(took, time.Since(begun))
		for scan.Scan() { // to the end, so that the connection can be reused
		}
		res.Body.Close()
	}
	return ms(percentile(took, 50)), nil
}
