package server

import (
	"fmt"
	"maps"

	"github.com/holdfast-agents/holdfast/internal/quota"
)

// Quota bounds what one tenant or one user may use. A zero member means no limit. Requests
// that it refuses get the error limit_exceeded; a run that has begun is never ended by it, and
// reading and deleting are always possible.
type Quota struct {
	// Runs are those in progress in this process.
	Runs int
	// Streams are the open responses of POST /runs and of the routes that read a run, in this
	// process. Those that a program opens with [Server.Run] do not count.
	Streams int
	// Threads are those that are stored. All processes that share a store count together.
	Threads int
	// Bytes is what the stored threads take, as GET /threads/{thread} says, counted like
	// Threads.
	Bytes int64
}

// TenantQuota bounds what one tenant may use.
type TenantQuota struct {
	// PerTenant bounds the tenant as a whole.
	PerTenant Quota
	// PerUser bounds each of its users.
	PerUser Quota
}

// Quotas bounds what tenants and users may use.
type Quotas struct {
	// PerTenant bounds each tenant. If it has no Runs and there are several tenants (see
	// Config.MultiTenant), a tenant may use a quarter of Config.MaxRuns. Without Streams it
	// leaves some of Config.MaxConnections to others.
	PerTenant Quota
	// PerUser bounds each user. If it has no Runs or Streams and there are several users (see
	// Config.MultiUser), a user leaves some of what the tenant may use to others.
	PerUser Quota
	// Tenants has what is different for single tenants, by name: members that are not 0
	// take the place of those above.
	Tenants map[string]TenantQuota
}

// validate refuses limits that are negative.
func (q *Quotas) validate() error {
	all := map[string]Quota{"PerTenant": q.PerTenant, "PerUser": q.PerUser}
	for name, own := range maps.All(q.Tenants) {
		all["PerTenant of "+name], all["PerUser of "+name] = own.PerTenant, own.PerUser
	}
	for name, one := range all {
		if one.Runs < 0 || one.Streams < 0 || one.Threads < 0 || one.Bytes < 0 {
			return fmt.Errorf("Config.Quotas.%s has a negative limit: use 0 for none", name)
		}
	}
	return nil
}

// limits returns the quotas as a limiter has them.
func (q *Quotas) limits() quota.Limits {
	bounds := func(q Quota) quota.Bounds {
		return quota.Bounds{Runs: q.Runs, Streams: q.Streams, Threads: q.Threads, Bytes: q.Bytes}
	}
	l := quota.Limits{
		Pair: quota.Pair{PerTenant: bounds(q.PerTenant), PerUser: bounds(q.PerUser)}, Tenants: map[string]quota.Pair{},
	}
	for name, own := range q.Tenants {
		l.Tenants[name] = quota.Pair{PerTenant: bounds(own.PerTenant), PerUser: bounds(own.PerUser)}
	}
	return l
}
