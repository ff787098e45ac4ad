package config

import (
	"go.yaml.in/yaml/v4"
)

// The limits of tenants and users: the key limits at the top of the file.

// Quota is what one tenant or one user may use. Zero means not set; set values are
// positive.
type Quota struct {
	Runs, Streams, Threads int
	// Bytes is the size of the stored threads.
	Bytes int64
}

// TenantQuota is what one tenant and each of its users may use.
type TenantQuota struct {
	PerTenant, PerUser Quota
}

// Quotas are the limits of all tenants and users.
type Quotas struct {
	TenantQuota
	// Tenants has what is different for single tenants, by name.
	Tenants map[string]TenantQuota
}

func (p *parser) quotas(n *yaml.Node) (q Quotas) {
	known := p.tenantQuota(&q.TenantQuota)
	known["tenants"] = func(n *yaml.Node) {
		q.Tenants = map[string]TenantQuota{}
		p.entries(n, "tenants", func(name string, _ place, n *yaml.Node) {
			var own TenantQuota
			p.object(n, "the limits of a tenant", p.tenantQuota(&own))
			q.Tenants[name] = own
		})
	}
	p.object(n, "limits", known)
	return q
}

// tenantQuota returns the keys that are read into q.
func (p *parser) tenantQuota(q *TenantQuota) fields {
	return fields{
		"perTenant": func(n *yaml.Node) { q.PerTenant = p.quota(n, "perTenant") },
		"perUser":   func(n *yaml.Node) { q.PerUser = p.quota(n, "perUser") },
	}
}

func (p *parser) quota(n *yaml.Node, what string) (q Quota) {
	p.object(n, what, fields{
		"runs":    func(n *yaml.Node) { q.Runs = p.count(n, "runs") },
		"streams": func(n *yaml.Node) { q.Streams = p.count(n, "streams") },
		"threads": func(n *yaml.Node) { q.Threads = p.count(n, "threads") },
		"bytes":   func(n *yaml.Node) { q.Bytes = p.largeSize(n, "bytes") },
	})
	return q
}
