package server_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/server"
)

// exchangeHours lets the agent trader run only while the exchange is open.
func exchangeHours(ctx context.Context, who holdfast.Principal, action access.Action, agent string) error {
	if action == access.Run && agent == "trader" && !exchangeIsOpen() {
		return holdfast.Errorf(codes.Forbidden, "The exchange is closed.").WithHint("Come back at nine.")
	}
	return server.Authorize(ctx, who, action, agent) // the table
}

func exchangeIsOpen() bool { return false }

// TestSecurityPage: the code, the agents file, the line of the log and the table of roles
// in docs/security.md are true.
func TestSecurityPage(t *testing.T) {
	page := string(must(os.ReadFile("../docs/security.md"))(t))
	blocks := map[string]string{}
	for _, m := range regexp.MustCompile("(?ms)^```(go|yaml|text)\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		blocks[m[1]] += m[2]
	}

	if source := string(must(os.ReadFile("page_test.go"))(t)); blocks["go"] == "" ||
		!strings.Contains(source, "\n"+blocks["go"]) {
		t.Error("the code on the page is not that of this file")
	}
	who := holdfast.Principal{Tenant: "acme", User: "alice"}
	for agent, want := range map[string]string{"trader": "The exchange is closed.", "other": ""} {
		got := ""
		if err := exchangeHours(t.Context(), who, access.Run, agent); err != nil {
			got = holdfast.AsError(err).Message
		}
		if got != want {
			t.Errorf("%s: %s", agent, got)
		}
	}

	file := filepath.Join(t.TempDir(), "holdfast.yaml")
	if err := os.WriteFile(file, []byte(blocks["yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	if agents, _, err := server.ValidateAgents(file, server.Parts{}); err != nil ||
		agents[0].Approvals != access.RoleApprover {
		t.Errorf("%+v, %v", agents, err)
	}

	ops := role("ops", access.RoleTenantOperator)
	_, s, log := keyed(t, callers{}, nil)
	all(t, s.Run(t.Context(), who, server.Input{Thread: "t1", Text: "hi"}))
	must(s.Delete(t.Context(), ops, "t1", "", false))(t)
	if got := log.audit(); len(got) != 1 || blocks["text"] != "level=INFO msg=audit "+got[0]+"\n" {
		t.Errorf("the log has %q, the page %q", got, blocks["text"])
	}
}

// TestRolesOnThePage: the table of roles says what the code does, about every action.
func TestRolesOnThePage(t *testing.T) {
	page := string(must(os.ReadFile("../docs/security.md"))(t))
	roles := access.Roles()
	var actions []access.Action
	rows := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|((?: ✓? ?\\|){6})")
	for _, m := range rows.FindAllStringSubmatch(page, -1) {
		action := access.Action(m[1])
		actions = append(actions, action)
		for i, cell := range strings.Split(strings.Trim(m[2], "|"), "|") {
			r := &access.Rights{Roles: roles[i : i+1]}
			if says := strings.Contains(cell, "✓"); says != r.Allow(action, "") {
				t.Errorf("%s, %s: the page says %v", action, roles[i], says)
			}
		}
	}
	want := []access.Action{
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
	if !slices.Equal(actions, want) {
		t.Errorf("the page has the actions %s", fmt.Sprint(actions))
	}
}
