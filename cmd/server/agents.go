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
	parts := o.parts(journal)
	agents, limits, err := server.LoadAgents(orDefault(o.configFile, defaultConfig), parts)
	if errors.Is(err, fs.ErrNotExist) && o.configFile == "" {
		return server.LoadAgents("", parts)
	}
	return agents, limits, err
}

// quotas returns the limits of tenants and users, which stand in the same file.
func (o *options) quotas(journal io.Writer) (server.Quotas, error) {
	q, err := server.LoadQuotas(orDefault(o.configFile, defaultConfig), o.parts(journal))
	if errors.Is(err, fs.ErrNotExist) && o.configFile == "" {
		return server.Quotas{}, nil
	}
	return q, err
}

// parts is what the file may name. Whoever reads the file needs all of it: a tool that is
// not known is a mistake in the file.
func (o *options) parts(journal io.Writer) server.Parts {
	return server.Parts{DefaultModel: o.model, Getenv: o.getenv, DemoDelay: o.demoDelay, DemoJournal: journal}
}
