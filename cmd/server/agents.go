package main

import (
	"errors"
	"io"
	"io/fs"

	"github.com/holdfast-agents/holdfast"
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

// quotas returns the limits of tenants and users.
func (o *options) quotas() (server.Quotas, error) {
	parts := server.Parts{DefaultModel: o.model, Getenv: o.getenv, DemoDelay: o.demoDelay}
	q, err := server.LoadQuotas(orDefault(o.configFile, defaultConfig), parts)
	if errors.Is(err, fs.ErrNotExist) && o.configFile == "" {
		return server.Quotas{}, nil
	}
	return q, err
}
