package access_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast/access"
)

// TestAllow walks all roles and actions.
func TestAllow(t *testing.T) {
	actions := []access.Action{
		access.Read,
		access.Run,
		access.Answer,
		access.Approve,
		access.Cancel,
		access.Change,
		access.Delete,
		access.OperateTenant,
		access.OperateServer,
		access.Finish,
	}
	for _, tt := range []struct {
		rights *access.Rights
		want   string
	}{
		{nil, "read run answer cancel change delete"},
		{&access.Rights{}, ""},
		{roles(access.RoleRead), "read"},
		{roles(access.RoleUser), "read run answer cancel change delete"},
		{roles(access.RoleApprover), "read answer approve"},
		{roles(access.RoleTenantOperator), "delete operate_tenant"},
		{roles(access.RoleServerOperator), "delete operate_tenant operate_server"},
		{roles(access.RoleService), "finish"},
		{roles(access.RoleRead, access.RoleTenantOperator), "read delete operate_tenant"},
		{roles(access.Roles()...), "read run answer approve cancel change delete operate_tenant operate_server finish"},
		{roles("admin"), ""},
		{roles(access.FormerOperator), ""},
	} {
		var got []string
		for _, a := range actions {
			if tt.rights.Allow(a, "") {
				got = append(got, string(a))
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%+v allows %v, want %s", tt.rights, got, tt.want)
		}
	}
}

func roles(r ...access.Role) *access.Rights { return &access.Rights{Roles: r} }

// TestAgents: a list of agents bounds every action that names an agent, for all roles.
func TestAgents(t *testing.T) {
	for _, tt := range []struct {
		agents []string
		agent  string
		want   bool
	}{
		{nil, "a", true}, {[]string{"a"}, "a", true}, {[]string{"b", "a"}, "a", true}, {[]string{"b"}, "a", false},
		{[]string{}, "a", false}, {[]string{}, "", true},
		{[]string{"a"}, "A", false}, {[]string{"a*"}, "ab", false},
	} {
		r := &access.Rights{Roles: access.Roles(), Agents: tt.agents}
		if got := r.Allow(access.Run, tt.agent); got != tt.want {
			t.Errorf("%v allow %q: %v", tt.agents, tt.agent, got)
		}
	}
}

func TestParseRole(t *testing.T) {
	for _, role := range access.Roles() {
		if got, err := access.ParseRole(string(role)); err != nil || got != role {
			t.Errorf("%s: %s, %v", role, got, err)
		}
	}
	for _, name := range []string{"", "User", "admin", "user "} {
		if got, err := access.ParseRole(name); err == nil || strings.Contains(fmt.Sprint(err), "admin") {
			t.Errorf("%q: %s, %v", name, got, err)
		}
	}
	_, err := access.ParseRole("operator")
	for _, word := range []access.Role{access.RoleTenantOperator, access.RoleServerOperator} {
		if err == nil || !strings.Contains(err.Error(), string(word)) {
			t.Errorf("the error about the role of earlier builds does not name %s: %v", word, err)
		}
	}
}
