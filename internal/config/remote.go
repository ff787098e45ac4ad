package config

import "go.yaml.in/yaml/v4"

// Reading where an agent runs that runs elsewhere.

// remote reads the key remote of an agent.
func (r *agentReader) remote(n *yaml.Node) *Declaration {
	shape := r.p.def("remote")
	d := newDeclaring(r.p, "remote", position(n))
	at := r.p.object(n, shape.Title, d.members(shape, d.d.values, ""))
	if _, ok := at["url"]; !ok && resolve(n).Kind == yaml.MappingNode {
		r.p.mistake(position(n), "remote has no url; add url:, where the agent takes its runs, like "+
			"http://localhost:8000/agent")
	}
	return d.d
}

// onlyRemote refuses what a remote agent decides by itself: its model.
func (r *agentReader) onlyRemote(a *Agent) {
	for _, key := range append([]string{"model", "models", "refusal"}, modelKeys...) {
		if at, there := a.at[key]; there {
			r.p.mistake(at, "remote and %s are both set; keep one, because an agent elsewhere has its own model", key)
		}
	}
	a.Models = []Model{{Declaration: &Declaration{}, Name: "remote/" + a.Name}}
}
