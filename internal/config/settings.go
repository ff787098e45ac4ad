package config

import "go.yaml.in/yaml/v4"

// settings reads the settings of the program: the key settings at the top of the file.
func (p *parser) settings(n *yaml.Node, checks map[string]func(value string) error) map[string]string {
	values := map[string]string{}
	known := fields{}
	for key, check := range checks {
		known[key] = func(n *yaml.Node) {
			value, ok := p.scalar(n, key, "a single value")
			if !ok {
				return
			}
			if err := check(value); err != nil {
				p.mistake(position(resolve(n)), "%s cannot be %s; %v", key, show(value), err)
				return
			}
			values[key] = value
		}
	}
	p.object(n, "settings", known)
	return values
}
