package server

import (
	"fmt"
	"reflect"
	"strings"
)

// Setting is one of the settings that a program was started with.
type Setting struct {
	// Name is how the setting is called.
	Name string
	// Value is how it would be written. It is never a secret.
	Value string
	// Source is where the value comes from, like flag, env, file or default.
	Source string
	// Text says what the setting is for.
	Text string
}

// fileSettings returns what the agents file bounds, as it is there: the limits of tenants and
// users, and those of each agent. What single tenants have instead is not shown.
func fileSettings(c *Config) []Setting {
	list := numbers("limits.perTenant", "bounds one tenant", c.Quotas.PerTenant)
	list = append(list, numbers("limits.perUser", "bounds one user", c.Quotas.PerUser)...)
	for _, a := range c.Agents {
		list = append(list, numbers("agents."+a.Name+".limits", "bounds the agent "+a.Name, c.Limits[a.Name])...)
	}
	return list
}

// numbers returns the fields of a struct that are set.
func numbers(name, text string, bounds any) (list []Setting) {
	for field, value := range reflect.ValueOf(bounds).Fields() {
		if !value.IsZero() {
			member := strings.ToLower(field.Name[:1]) + field.Name[1:]
			list = append(
				list,
				Setting{Name: name + "." + member, Value: fmt.Sprint(value.Interface()), Source: "file", Text: text},
			)
		}
	}
	return list
}
