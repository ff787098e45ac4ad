package config

// Reading the models of an agent: one, or a list in the order in which they are asked, each
// with where it is served and how.

import (
	"maps"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// Model is a model of an agent, and how it is asked. A member that is not in the file is
// zero.
type Model struct {
	// Name is one of Known.Models, or one of the prefixes there followed by a name.
	// Empty means the server's default model.
	Name string
	// BaseURL is an absolute http or https URL without credentials, once [Model.WithEnv]
	// has replaced its ${NAME}s.
	BaseURL string
	// Headers are further headers of each request to the model; see [Model.WithEnv].
	Headers map[string]string
	// Proxy is the URL of a proxy, or "direct" for none; see [Model.WithEnv]. It may have a
	// password in it.
	Proxy string
	// APIKeyEnv is the name of the environment variable that holds the key.
	APIKeyEnv string
	// Params is passed to the provider with each call. Its values are strings,
	// booleans, numbers, nil, []any and map[string]any, as in JSON. Most numbers are a
	// json.Number with the exact text of the file.
	Params map[string]any
	// Timeout bounds one call of the model, and IdleTimeout the time in which nothing comes
	// from it. 0 means that the agent's limits count.
	Timeout, IdleTimeout time.Duration

	file      string
	start     place
	at        map[string]place // of the keys
	valueAt   place            // of the value of baseURL
	headersAt map[string]place // of the values of headers
	proxyAt   place            // of the value of proxy
}

// Errorf makes a mistake that only the caller can find: a variable that is not set, a model
// that cannot be made. It is reported at the model's key or, if that is missing, where the
// model begins. The name of an agent's only model is the value of its key model.
func (m Model) Errorf(key, format string, args ...any) error {
	at, ok := m.at[key]
	if !ok {
		at = m.start
	}
	return &Error{File: m.file, Mistakes: []Mistake{mistakeAt(at, format, args...)}}
}

// WithEnv returns the model with values of the environment in its BaseURL, Proxy and Headers. The
// error is an [*Error] with each variable that is not set, and never has a value in it.
func (m Model) WithEnv(getenv func(string) string) (Model, error) {
	fill := &filler{mistakes{file: m.file}, getenv}
	m.BaseURL = fill.fill(m.BaseURL, "baseURL", m.valueAt)
	if wrong := wrongURL(m.BaseURL); m.BaseURL != "" && wrong != "" {
		fill.mistake(m.valueAt, "%s", wrong)
	}
	m.Proxy = fill.fill(m.Proxy, "proxy", m.proxyAt)
	if wrong := wrongProxy(m.Proxy); m.Proxy != "" && wrong != "" {
		fill.mistake(m.proxyAt, "%s", wrong)
	}
	m.Headers = maps.Clone(m.Headers)
	for name, text := range m.Headers {
		m.Headers[name] = fill.fill(text, member("headers", name), m.headersAt[name])
	}
	return m, fill.err()
}

// Set returns the first key that says how the model is asked; "" if none does.
func (m Model) Set() string {
	for _, key := range modelKeys {
		if _, there := m.at[key]; there {
			return key
		}
	}
	return ""
}

// modelKeys are the keys that say how a model is asked. They stand beside model, or in the
// entries of models.
var modelKeys = []string{"baseURL", "headers", "proxy", "apiKeyEnv", "params"}

// modelFields reads the values of modelKeys.
func (r *agentReader) modelFields(m *Model) fields {
	return fields{
		"baseURL":   func(n *yaml.Node) { m.BaseURL, m.valueAt = r.p.baseURL(n), position(resolve(n)) },
		"headers":   func(n *yaml.Node) { m.Headers, m.headersAt = r.p.headers(n) },
		"proxy":     func(n *yaml.Node) { m.Proxy, m.proxyAt = r.p.proxy(n), position(resolve(n)) },
		"apiKeyEnv": func(n *yaml.Node) { m.APIKeyEnv = r.apiKeyEnv(n) },
		"params": func(n *yaml.Node) {
			if resolve(n).Kind != yaml.MappingNode {
				r.p.wrongType(resolve(n), "params", "a mapping (key: value)")
				return
			}
			m.Params, _ = r.p.free(n, "params").(map[string]any)
		},
	}
}

// modelsOf returns the models of an agent: those of the list, or without one the one beside
// it, which may have no name.
func (r *agentReader) modelsOf(a *Agent, one Model, list *yaml.Node) []Model {
	if list == nil {
		return []Model{one}
	}
	if at, both := a.at["model"]; both {
		r.p.mistake(
			later(at, a.at["models"]),
			"model and models are both set; keep models, and make the model that is asked first its first entry",
		)
	}
	for _, key := range modelKeys {
		if at, there := a.at[key]; there {
			r.p.mistake(
				at,
				"beside models, %s would be for all of them; write it into the entry of the model that it "+
					"is for: {name: …, %s: …}",
				key,
				key,
			)
		}
	}
	var models []Model
	r.p.list(list, "models", func(n *yaml.Node) {
		m := r.modelEntry(n)
		for i := range models {
			if m.Name != "" && m.sameAs(&models[i]) {
				r.p.mistake(
					m.start,
					"the model %s is listed twice and asked in the same way; remove one: how often a "+
						"model is tried is modelTries",
					show(m.Name),
				)
				break
			}
		}
		models = append(models, m)
	})
	if n := resolve(list); n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		r.p.mistake(position(n), "models has no model; it needs at least one, like responses/gpt-6-luna")
	}
	return models
}

// modelEntry reads an entry of models: a name, or a mapping.
func (r *agentReader) modelEntry(n *yaml.Node) Model {
	m := Model{file: r.p.file, start: position(n)}
	if n.Kind != yaml.MappingNode {
		m.Name = r.modelName(n, "a model")
		return m
	}
	known := r.modelFields(&m)
	maps.Copy(known, fields{
		"name":        func(n *yaml.Node) { m.Name = r.modelName(n, "name") },
		"timeout":     func(n *yaml.Node) { m.Timeout = r.p.duration(n, "timeout") },
		"idleTimeout": func(n *yaml.Node) { m.IdleTimeout = r.p.duration(n, "idleTimeout") },
	})
	m.at = r.p.object(n, "a model", known)
	if _, ok := m.at["name"]; !ok {
		r.p.mistake(m.start, "this model has no name; add name:, like responses/gpt-6-luna")
	}
	return m
}

// sameAs reports whether two models are asked in the same place with the same key.
func (m *Model) sameAs(o *Model) bool {
	return m.Name == o.Name && m.BaseURL == o.BaseURL && m.APIKeyEnv == o.APIKeyEnv && m.Proxy == o.Proxy &&
		maps.Equal(m.Headers, o.Headers)
}

// modelName reads the name of a model, which is the value of the key.
func (r *agentReader) modelName(n *yaml.Node, key string) string {
	model, ok := r.p.text(n, key)
	if !ok {
		return ""
	}
	if strings.Contains(model, ",") {
		r.p.mistake(
			position(resolve(n)),
			"%s has a comma; list several models under models, one entry each",
			show(model),
		)
		return ""
	}
	for _, known := range r.known.Models {
		rest, found := strings.CutPrefix(model, known)
		if !strings.HasSuffix(known, "/") {
			found = found && rest == ""
		} else {
			found = found && rest != "" && !strings.ContainsAny(rest, " \t\n")
		}
		if found {
			return model
		}
	}
	shapes := make([]string, len(r.known.Models))
	for i, known := range r.known.Models {
		shapes[i] = known
		if strings.HasSuffix(known, "/") {
			shapes[i] += "<model>"
		}
	}
	provider, rest, slash := strings.Cut(model, "/")
	hint := listing(shapes)
	if !slash {
		if meant := closest(model, r.known.Models); meant != "" && !strings.HasSuffix(meant, "/") {
			hint = suggest(model, []string{meant})
		}
	} else if meant := closest(provider+"/", r.known.Models); strings.HasSuffix(meant, "/") && rest != "" &&
		meant != provider+"/" && !looksLikeKey(rest) {
		hint = "; did you mean " + show(meant+rest) + "?"
	}
	r.p.mistake(position(resolve(n)), "unknown model %s%s", show(model), hint)
	return ""
}

// apiKeyEnv never shows the value, which may be the key itself.
func (r *agentReader) apiKeyEnv(n *yaml.Node) string {
	name, ok := r.p.text(n, "apiKeyEnv")
	if !ok {
		return ""
	}
	at := position(resolve(n))
	switch {
	case looksLikeKey(name):
		r.p.mistake(
			at,
			"apiKeyEnv looks like the key itself; write the NAME of an environment variable, like OPENAI_API_KEY, "+
				"and replace that key, because it is no longer secret",
		)
	case !variableNames.MatchString(name):
		r.p.mistake(
			at,
			"apiKeyEnv must be the NAME of an environment variable, like OPENAI_API_KEY: letters, digits and _",
		)
	default:
		return name
	}
	return ""
}
