package apikey

// SeveralTenants reports whether the keys, as they were read last, belong to more than one
// tenant. It is what server.Config.MultiTenant takes.
func (k *Keys) SeveralTenants() bool { return k.current.Load().severalTenants() }

// severalTenants reports whether the keys belong to more than one tenant.
func (t *table) severalTenants() bool {
	first, found := "", false
	for _, entries := range t.byIndex {
		for _, e := range entries {
			if found && e.principal.Tenant != first {
				return true
			}
			first, found = e.principal.Tenant, true
		}
	}
	return false
}

// SeveralUsers reports whether the keys, as they were read last, belong to more than one user
// of the tenant. It is what server.Config.MultiUser takes.
func (k *Keys) SeveralUsers(tenant string) bool {
	first, found := "", false
	for _, entries := range k.current.Load().byIndex {
		for _, e := range entries {
			if e.principal.Tenant != tenant {
				continue
			}
			if found && e.principal.User != first {
				return true
			}
			first, found = e.principal.User, true
		}
	}
	return false
}
