package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/apikey"
	"github.com/holdfast-agents/holdfast/server"
)

// configured returns the file's agents and their limits. If there is no file, there is
// one agent, unless the file was named explicitly.
func (o *options) configured(journal io.Writer) ([]holdfast.Agent, map[string]server.Limits, error) {
	parts := server.Parts{DefaultModel: o.model, Getenv: o.getenv, DemoDelay: o.demoDelay, DemoJournal: journal}
	agents, limits, err := server.LoadAgents(orDefault(o.configFile, defaultConfig), parts)
	if errors.Is(err, fs.ErrNotExist) && o.configFile == "" {
		return server.LoadAgents("", parts)
	}
	return agents, limits, err
}

// authenticate returns nil without keys; the server then listens on loopback only.
func (o *options) authenticate() (func(*http.Request) (holdfast.Principal, error), error) {
	list := o.getenv("HOLDFAST_API_KEYS")
	if list == "" {
		return nil, nil
	}
	keys, err := apikey.Parse(list, os.ReadFile)
	if err != nil {
		return nil, fmt.Errorf("HOLDFAST_API_KEYS: %w", err)
	}
	return keys.Authenticate, nil
}
