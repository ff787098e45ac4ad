package agents

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/sharedstate"
	"github.com/holdfast-agents/holdfast/state"
)

// A revision tells one version of an agent from another. It is a short hash of what shapes a
// run: the same declaration has the same one in every process, in whatever order it was put
// together, and it depends on no secret, no address and no time.
//
// The hash covers the JSON of the types below. Their members are never renamed, and a new one
// is left out where it is not set, so that an agent keeps its revision when the server is
// updated.

// length is how many hexadecimal digits a revision has. Only revisions of one agent are ever
// compared.
const length = 12

// Limits are what bounds a run of the agent, with the server's where the agent has none.
type Limits struct {
	MaxIterations    int           `json:"maxIterations,omitempty"`
	ModelTries       int           `json:"modelTries,omitempty"`
	ModelTimeout     time.Duration `json:"modelTimeout,omitempty"`
	ModelIdleTimeout time.Duration `json:"modelIdleTimeout,omitempty"`
	MaxAnswer        int           `json:"maxAnswer,omitempty"`
	MaxCalls         int           `json:"maxCalls,omitempty"`
	MaxArguments     int           `json:"maxArguments,omitempty"`
	MaxMedia         int           `json:"maxMedia,omitempty"`
	ToolTimeout      time.Duration `json:"toolTimeout,omitempty"`
	MaxToolResult    int           `json:"maxToolResult,omitempty"`
}

// declaration is what shapes a run of an agent.
type declaration struct {
	Instructions    string   `json:"instructions,omitempty"`
	Models          []model  `json:"models"` // in the order in which they are asked
	FallbackRefused bool     `json:"fallbackRefused,omitempty"`
	Tools           []tool   `json:"tools,omitempty"` // by name
	Toolsets        []string `json:"toolsets,omitempty"`
	Middleware      []layer  `json:"middleware,omitempty"` // the first is outermost
	Output          *output  `json:"output,omitempty"`
	State           *shown   `json:"state,omitempty"`
	Client          client   `json:"client"`
	HideToolErrors  bool     `json:"hideToolErrors,omitempty"`
	Limits          Limits   `json:"limits"`
	Declared        string   `json:"declared,omitempty"` // holdfast.Agent.Revision
}

// client is a [holdfast.ClientPolicy].
type client struct {
	Import       string `json:"import,omitempty"`
	Instructions string `json:"instructions,omitempty"`
	Context      string `json:"context,omitempty"`
	MediaURLs    string `json:"mediaURLs,omitempty"`
	MediaFiles   bool   `json:"mediaFiles,omitempty"`
}

type model struct {
	Provider string `json:"provider,omitempty"`
	Name     string `json:"name,omitempty"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  any             `json:"parameters,omitempty"`
	Effect      holdfast.Effect `json:"effect,omitempty"`
	InDoubt     holdfast.Doubt  `json:"inDoubt,omitempty"`
	Timeout     time.Duration   `json:"timeout,omitempty"`
	Query       bool            `json:"query,omitempty"`
	Outside     *outside        `json:"outside,omitempty"`
}

type outside struct {
	Result       any           `json:"result,omitempty"`
	ExpiresAfter time.Duration `json:"expiresAfter,omitempty"`
	Abandonable  bool          `json:"abandonable,omitempty"`
	FinishedBy   access.Role   `json:"finishedBy,omitempty"`
}

type layer struct {
	Name   string         `json:"name"`
	States map[string]int `json:"states,omitempty"` // versions by name
}

type output struct {
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	Schema      any    `json:"schema"`
}

// shown is a [sharedstate.Options].
type shown struct {
	Show     string   `json:"show,omitempty"`
	Paths    []string `json:"paths,omitempty"`
	At       string   `json:"at,omitempty"`
	MaxBytes int      `json:"maxBytes,omitempty"`
	Schema   any      `json:"schema,omitempty"`

	Predict []sharedstate.Prediction `json:"predict,omitempty"`
}

// Revision returns the revision of an agent.
//
// The tools that its toolsets list are no part of it, because they change while the server
// runs; neither is where its models and tools are served.
func Revision(a *holdfast.Agent, l Limits) string {
	d := declaration{
		Instructions:    a.Instructions,
		FallbackRefused: a.FallbackRefused,
		Client:          client(a.Client),
		HideToolErrors:  a.HideToolErrors,
		Limits:          l,
		Declared:        a.Revision,
	}
	for _, m := range append([]holdfast.Model{a.Model}, a.Fallbacks...) {
		d.Models = append(d.Models, modelOf(m))
	}
	tools := slices.Clone(a.Tools)
	for _, m := range a.Middleware {
		d.Middleware, tools = append(d.Middleware, layerOf(&m)), append(tools, m.Tools...)
	}
	for _, t := range tools {
		d.Tools = append(d.Tools, toolOf(t.Spec()))
	}
	slices.SortFunc(d.Tools, func(a, b tool) int { return cmp.Compare(a.Name, b.Name) })
	for _, set := range a.Toolsets {
		if named, ok := set.(interface{ Name() string }); ok {
			d.Toolsets = append(d.Toolsets, named.Name())
		}
	}
	slices.Sort(d.Toolsets)
	if o := a.Output; o != nil {
		d.Output = &output{o.Name, o.Description, meaning(o.Schema)}
	}
	if s := a.State; s != nil {
		d.State = &shown{
			Show:     s.Show,
			Paths:    s.Paths,
			At:       s.At,
			MaxBytes: s.MaxBytes,
			Schema:   meaning(s.Schema),
			Predict:  s.Predict,
		}
	}
	return Hash(d)
}

// Hash returns a hash of a value, in the form of a revision. The value is one that can be
// encoded as JSON, without funcs and channels.
func Hash(v any) string {
	raw, err := json.Marshal(v)
	if err != nil { // a number that is none, for example
		raw = []byte(err.Error())
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])[:length]
}

// modelOf returns what a model says of itself; nothing of one that says nothing.
func modelOf(m holdfast.Model) (is model) {
	if named, ok := m.(interface{ ModelName() (string, string) }); ok {
		is.Provider, is.Name = named.ModelName()
	}
	return is
}

func toolOf(s holdfast.ToolSpec) tool {
	t := tool{
		Name:        s.Name,
		Description: s.Description,
		Parameters:  meaning(s.Parameters),
		Effect:      cmp.Or(s.Effect, holdfast.EffectIdempotent),
		InDoubt:     cmp.Or(s.InDoubt, holdfast.DoubtTell),
		Timeout:     s.Timeout,
		Query:       s.Query != nil,
	}
	if o := s.Outside; o != nil {
		t.Outside = &outside{meaning(o.Result), o.ExpiresAfter, o.Abandonable, o.FinishedBy}
	}
	return t
}

// layerOf returns what can be told of a middleware: its name and its states.
func layerOf(m *holdfast.Middleware) layer {
	l := layer{Name: m.Name}
	if schema, err := state.NewSchema(m.States...); err == nil { // the maker of the agent reports the error
		l.States = schema.Info().StateVersions
	}
	return l
}

// meaning returns a JSON text without what means nothing in it: white space, and the order
// of members.
func meaning(raw json.RawMessage) (v any) {
	if len(raw) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return string(raw)
	}
	return v
}
