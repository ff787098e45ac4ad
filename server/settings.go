package server

// The view of the configuration. It never has a secret in it.

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"
)

// fileSettings returns what the agents file bounds, as it is there: the limits of tenants and
// users, and those of each agent. Limits of single tenants are not shown.
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
			list = append(list, Setting{Name: name + "." + member, Value: fmt.Sprint(value.Interface()),
				Source: "file", Text: text})
		}
	}
	return list
}

// storeText names the store. It never shows a password.
func (c *Config) storeText() string {
	if c.OpenStore != nil {
		return "the program's own"
	}
	if path, ok := strings.CutPrefix(c.Store, "file:"); ok {
		return path + "  (embedded)"
	}
	if u, err := url.Parse(c.Store); err == nil && u.Host != "" {
		return u.Scheme + "://" + u.Host + u.Path + "  (shared)"
	}
	return "memory"
}
