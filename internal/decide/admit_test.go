package decide

import (
	"strings"
	"testing"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
)

// message is a message "role id", with a call or the result of one.
func message(role, id string) agui.Message {
	m := agui.FromDomain(holdfast.Message{ID: id, Role: holdfast.Role(role), Text: id})
	switch role {
	case "assistant":
		m.ToolCalls = []agui.ToolCall{{ID: "call", Function: agui.Function{Name: "f", Arguments: "{}"}}}
	case "tool":
		m.ToolCallID = "call"
	}
	return m
}

// taking is what a comparison has, in short; * is a mark.
func taking(c Compared) string {
	if c.Err != nil {
		return c.Err.Code
	}
	var all []string
	for _, list := range [][]agui.Message{c.Users, c.Results} {
		for i := range list {
			s := list[i].Role + " " + list[i].ID
			if list[i].Imported() {
				s += "*"
			}
			all = append(all, s)
		}
	}
	return strings.Join(all, ", ")
}

// TestImportPolicy: what a new thread takes of a history that a client brings, by the agent's
// policy, and how it is marked.
func TestImportPolicy(t *testing.T) {
	t.Parallel()
	whole := []agui.Message{
		message("system", "s0"),
		message("user", "u1"),
		message("system", "s1"),
		message("reasoning", "r1"),
		message("assistant", "a1"),
		message("tool", "t1"),
		message("developer", "d1"),
		message("assistant", "a2"),
		message("user", "u2"),
		message("user", "u3"),
	}
	whole[7].ToolCalls = nil
	for _, c := range []struct {
		name   string
		sent   []agui.Message
		policy holdfast.ClientPolicy
		want   string
		resync bool
	}{
		{"as a server without configuration", whole, holdfast.ClientPolicy{},
			"user u1, system s1*, reasoning r1*, assistant a1*, tool t1*, developer d1*, " +
				"assistant a2*, user u2, user u3",
			false},
		{"all", whole, holdfast.ClientPolicy{Import: thread.ImportAll},
			"user u1, system s1*, reasoning r1*, assistant a1*, tool t1*, developer d1*, " +
				"assistant a2*, user u2, user u3",
			false},
		{"no instructions", whole, holdfast.ClientPolicy{Instructions: thread.ShowNothing},
			"user u1, reasoning r1*, assistant a1*, tool t1*, assistant a2*, user u2, user u3", true},
		{"users", whole, holdfast.ClientPolicy{Import: thread.ImportUsers}, "user u1, user u2, user u3", true},
		{"none", whole, holdfast.ClientPolicy{Import: thread.ImportNone}, "user u2, user u3", true},
		{"none of a single message", whole[8:], holdfast.ClientPolicy{Import: thread.ImportNone}, "user u2, user u3",
			false},
		{"users of what ends in a result", whole[:6], holdfast.ClientPolicy{Import: thread.ImportUsers}, "user u1",
			true},
		{"none of what ends in a result", whole[:6], holdfast.ClientPolicy{Import: thread.ImportNone},
			codes.NothingToRun, true},
		{"an answer to nothing", whole[:2], holdfast.ClientPolicy{Import: thread.ImportNone}, "user u1", false},
	} {
		compared := Compare(nil, nil, c.sent, false, false, "")
		compared.Admit(&c.policy)
		if got := taking(compared); got != c.want || compared.Resync != c.resync {
			t.Errorf("%s:\n got %s, resync %v\nwant %s, resync %v", c.name, got, compared.Resync, c.want, c.resync)
		}
	}
}

// TestResultsOfTheFrontend: the result of a tool that the frontend runs is the client's
// word, whatever the policy is.
func TestResultsOfTheFrontend(t *testing.T) {
	t.Parallel()
	h := thread.NewHistory()
	for _, m := range []agui.Message{message("user", "u1"), message("assistant", "a1")} {
		h.Add(m, m.AppendJSON(nil))
	}
	for _, policy := range []string{thread.ImportAll, thread.ImportUsers, thread.ImportNone} {
		compared := Compare(h, []string{"call"}, []agui.Message{message("tool", "t1"), message("user", "u2")}, false,
			false, "")
		compared.Admit(&holdfast.ClientPolicy{Import: policy})
		if got := taking(compared); got != "user u2, tool t1*" {
			t.Errorf("%s: %s", policy, got)
		}
	}
}

// TestMedia: which references a client may send. Addresses of private networks are found
// in every notation that a provider's HTTP client may understand.
func TestMedia(t *testing.T) {
	t.Parallel()
	web := func(url string) *holdfast.Source { return &holdfast.Source{Type: holdfast.SourceURL, Value: url} }
	file := &holdfast.Source{Type: holdfast.SourceFile, Value: "file-1", Provider: "openai"}
	data := &holdfast.Source{Type: holdfast.SourceData, Value: "aGk=", MIMEType: "image/png"}
	standard, anyURL, none := holdfast.ClientPolicy{}, holdfast.ClientPolicy{
		MediaURLs: thread.MediaAny,
	}, holdfast.ClientPolicy{
		MediaURLs: thread.MediaNone,
	}
	for _, c := range []struct {
		source *holdfast.Source
		policy holdfast.ClientPolicy
		want   *refusal
	}{
		{data, none, nil},
		{web("data:image/png;base64,aGk="), none, nil},
		{web("DATA:text/plain,hi there\\"), standard, nil},
		{file, standard, noFile},
		{file, holdfast.ClientPolicy{MediaFiles: true}, nil},
		{web("https://example.com/a.png?x=1"), standard, nil},
		{web("https://example.com/a.png"), none, noURL},
		{web("http://example.com/a.png"), standard, notHTTPS},
		{web("http://example.com/a.png"), anyURL, nil},
		{web("gs://bucket/a.png"), standard, notHTTPS},
		{web("gs://bucket/a.png"), anyURL, nil},
		{web("file:///etc/passwd"), standard, notHTTPS},
		{web("javascript:alert(1)"), standard, notHTTPS},
		{web("/etc/passwd"), anyURL, malformed},
		{web(""), standard, malformed},
		{web("https://"), standard, malformed},
		{web("https:///127.0.0.1/"), standard, malformed},
		{web("https://user@example.com/"), standard, malformed},
		{web("https://example.com\\@127.0.0.1/"), standard, malformed},
		{web("https:\\\\127.0.0.1\\"), standard, malformed},
		{web(" https://example.com/"), standard, malformed},
		{web("https://127.0\n.0.1/"), standard, malformed},
		{web("https://１２７.0.0.1/"), standard, malformed},
		{web("https://127%2e0.0.1/"), standard, malformed},
	} {
		if got := refuse(c.source, &c.policy); got != c.want {
			t.Errorf("%+v with %+v: %v, want %v", *c.source, c.policy, got, c.want)
		}
	}
	for _, host := range []string{
		"localhost", "LOCALHOST", "localhost.", "a.localhost", "127.0.0.1", "127.0.0.1.", "127.1", "127.0.1",
		"2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001",
		"0", "0.0.0.0", "0x", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254",
		"0xa9fea9fe", "2852039166", "169.254.43518",
		"100.64.0.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "256.1.1.1", "1.2.3.4.5", "4294967296", "08.0.0.1",
		"foo.0x7f",
		"[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[::127.0.0.1]", "[fe80::1]", "[fe80::1%25eth0]",
		"[fc00::1]", "[fd12::1]", "[fec0::1]", "[ff02::1]",
		"[64:ff9b::10.0.0.1]", "[64:ff9b:1::1]", "[2002:7f00:1::]",
		"vault", "VAULT", "vault.", "metadata", "printer.local", "metadata.google.internal",
		"Metadata.Google.Internal.",
		"vault.internal", "host.docker.internal", "nas.lan", "tv.home", "tv.home.arpa", "home.arpa", "wiki.corp",
		"wiki.intranet", "a.private", "vault.default.svc", "vault.default.svc.cluster.local",
	} {
		for _, port := range []string{"", ":8080"} {
			for _, p := range []holdfast.ClientPolicy{standard, anyURL} {
				if got := refuse(web("https://"+host+port+"/latest/meta-data"), &p); got != private {
					t.Errorf("%s%s with %q: %v", host, port, p.MediaURLs, got)
				}
			}
		}
	}
	for _, host := range []string{"8.8.8.8", "172.32.0.1", "100.128.0.1", "1.1", "134744072", "[2606:4700::1111]",
		"[64:ff9b::8.8.8.8]", "example.com", "10.example.com", "face.example", "0x7f.example",
		"internal.example", "local.example.com", "lan.example.org", "mylan.example", "a.homearpa"} {
		if got := refuse(web("https://"+host+"/a.png"), &standard); got != nil {
			t.Errorf("%s: %v", host, got)
		}
	}
}

// TestMediaRefused: the error names the message and the part and says what to send
// instead; the reference is not in it. Text parts are never refused.
func TestMediaRefused(t *testing.T) {
	t.Parallel()
	const secret = "http://example.com/?token=secret"
	m := agui.FromDomain(holdfast.Message{ID: "m1", Role: holdfast.RoleUser, Parts: []holdfast.Part{
		{Type: holdfast.PartText, Text: secret},
		{Type: holdfast.PartImage, Source: &holdfast.Source{Type: holdfast.SourceURL, Value: secret}},
	}})
	compared := Compare(nil, nil, []agui.Message{m}, false, false, "")
	compared.Admit(&holdfast.ClientPolicy{})
	e := compared.Err
	if e == nil || e.Code != codes.MediaRefused || e.Hint == "" || e.Details["messageId"] != "m1" ||
		e.Details["part"] != 1 {
		t.Fatalf("%+v", e)
	}
	if strings.Contains(e.Error()+e.Hint, "secret") {
		t.Errorf("the error repeats the reference: %v", e)
	}
	h := thread.NewHistory()
	was := message("user", "m1")
	h.Add(was, was.AppendJSON(nil))
	edited := Compare(h, nil, []agui.Message{m}, true, false, "")
	edited.Admit(&holdfast.ClientPolicy{})
	if e := edited.Err; e == nil || e.Details["messageId"] != "m1" || !strings.Contains(e.Message, `"m1"`) {
		t.Errorf("of an edited message: %+v", e)
	}
	d, err := m.Domain()
	if err != nil {
		t.Fatal(err)
	}
	shown := Withhold(d, &holdfast.ClientPolicy{})
	if shown.Parts[0].Text != secret || shown.Parts[1].Source != nil ||
		!strings.Contains(shown.Parts[1].Text, "left out") {
		t.Errorf("%+v", shown.Parts)
	}
	if d.Parts[1].Source == nil {
		t.Error("the message itself was changed")
	}
}
