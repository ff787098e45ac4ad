package config

// Reading the models of an agent: one, or a list in the order in which they are asked, each
// with where it is served and how.

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Model is a model of an agent, and how it is asked: a declaration with the keys name, baseURL,
// headers, proxy, apiKeyEnv, params, timeout and idleTimeout. An error of a key is reported at
// the key itself; of the name of an agent's only model, at its key model.
type Model struct {
	*Declaration
	// Name is one of Known.Models, or one of the prefixes there followed by a name.
	// Empty means the server's default model.
	Name string
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
func (r *agentReader) modelFields(d declaring) fields {
	known := d.members(r.p.def("model"), d.d.values, "")
	maps.DeleteFunc(known, func(key string, _ func(*yaml.Node)) bool { return !slices.Contains(modelKeys, key) })
	return known
}

// modelsOf returns the models of an agent: those of the list, or without one the one beside
// it, which may have no name.
func (r *agentReader) modelsOf(a *Agent, one Model, list *yaml.Node) []Model {
	if list == nil {
		return []Model{one}
	}
	if at, both := a.at["model"]; both {
		r.p.mistake(later(at, a.at["models"]),
			"model and models are both set; keep models, and make the model that is asked first its first entry")
	}
	for _, key := range modelKeys {
		if at, there := a.at[key]; there {
			r.p.mistake(at, "beside models, %s would be for all of them; write it into the entry of the model that "+
				"it is for: {name: …, %s: …}", key, key)
		}
	}
	var models []Model
	r.p.list(list, "models", func(n *yaml.Node) {
		m := r.modelEntry(n)
		for i := range models {
			if m.Name != "" && m.sameAs(&models[i]) {
				r.p.mistake(m.start, "the model %s is listed twice and asked in the same way; remove one: how often "+
					"a model is tried is modelTries", show(m.Name))
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
	d := newDeclaring(r.p, "model", position(n))
	m := Model{Declaration: d.d}
	if n.Kind != yaml.MappingNode {
		m.Name = r.modelName(n, "a model")
		return m
	}
	shape := r.p.def("model")
	known := d.members(shape, d.d.values, "")
	known["name"] = func(n *yaml.Node) { m.Name = r.modelName(n, "name") }
	m.at = r.p.object(n, shape.Title, known)
	if _, ok := m.at["name"]; !ok {
		r.p.mistake(m.start, "this model has no name; add name:, like responses/gpt-6-luna")
	}
	return m
}

// sameAs reports whether two models are asked in the same place with the same key.
func (m *Model) sameAs(o *Model) bool {
	return m.Name == o.Name && !slices.ContainsFunc([]string{"baseURL", "headers", "proxy", "apiKeyEnv"},
		func(key string) bool {
			return !reflect.DeepEqual(written(m.values[key]), written(o.values[key]))
		})
}

// written returns a value with the texts as they are in the file.
func written(v any) any {
	switch v := v.(type) {
	case phrase:
		return v.text
	case map[string]any:
		all := make(map[string]any, len(v))
		for key, value := range v {
			all[key] = written(value)
		}
		return all
	}
	return v
}

// modelName reads the name of a model, which is the value of the key.
func (r *agentReader) modelName(n *yaml.Node, key string) string {
	model, ok := r.p.text(n, key)
	if !ok {
		return ""
	}
	if strings.Contains(model, ",") {
		r.p.mistake(position(resolve(n)), "%s has a comma; list several models under models, one entry each",
			show(model))
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
