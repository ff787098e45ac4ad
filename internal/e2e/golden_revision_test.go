package e2e

import "testing"

// goldenRevision is the revision of the agent of a finished run in a golden store.
type goldenRevision struct {
	Revision string
}

// revisionOf returns what is shown of the first run of a thread.
func revisionOf(t *testing.T, p *process, thread string) string {
	t.Helper()
	var body struct {
		Runs []struct{ Revision string }
	}
	getJSON(t, p.url+"/threads/"+thread+"/runs", &body)
	if len(body.Runs) == 0 {
		t.Fatalf("%s has no runs", thread)
	}
	return body.Runs[len(body.Runs)-1].Revision
}

// readRevision notes it.
func (g *goldenRevision) readRevision(t *testing.T, p *process) {
	t.Helper()
	if g.Revision = revisionOf(t, p, "finished"); g.Revision == "" {
		t.Fatal("the finished run has no revision")
	}
}

// checkRevision: a run that has ended keeps it, whatever revision its agent has now.
func (g *goldenRevision) checkRevision(t *testing.T, p *process) {
	t.Helper()
	if got := revisionOf(t, p, "finished"); got != g.Revision {
		t.Errorf("the finished run has the revision %q, want %q", got, g.Revision)
	}
}
