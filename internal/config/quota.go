package config

import (
	"math"
	"strconv"
	"strings"

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

// largeSize reads a size that may be that of many threads.
func (p *parser) largeSize(n *yaml.Node, what string) int64 {
	text, ok := p.scalar(n, what, "a size")
	if !ok {
		return 0
	}
	digits := strings.TrimRight(text, "KMGTiB")
	unit, known := map[string]int64{
		"B":   1,
		"KB":  1e3,
		"MB":  1e6,
		"GB":  1e9,
		"TB":  1e12,
		"KiB": 1 << 10,
		"MiB": 1 << 20,
		"GiB": 1 << 30,
		"TiB": 1 << 40,
	}[text[len(digits):]]
	v, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if !known || err != nil || v < 1 || v > math.MaxInt64>>10/unit {
		p.mistake(
			position(resolve(n)),
			"%s cannot be %s; write a size with its unit, like 500MiB or 10GiB",
			what,
			show(text),
		)
		return 0
	}
	return v * unit
}
