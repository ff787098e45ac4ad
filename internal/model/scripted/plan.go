package scripted

import "fmt"

// plan works through n steps, one per iteration. The history tells which step is next.
func plan(s situation, match []string) answer {
	n := number(match[1], 10, 1000)
	if tool := s.missing("lookup", "calculate", "update_plan"); tool != "" {
		return needs(tool)
	}
	if s.steps >= n {
		return say("All %d steps are done. This is what the tools said:\n%s", n, summary(s.results))
	}
	step := s.steps + 1
	terms := terms()
	a := say("Step %d of %d: I look up “%s” and move on.", step, n, terms[s.steps%len(terms)]).
		with(callTool("lookup", "term", terms[s.steps%len(terms)]),
			callTool("update_plan", "title", fmt.Sprintf("A plan of %d steps", n), "steps", phases(n, step)))
	if step%2 == 0 {
		a = a.with(callTool("calculate", "expression", fmt.Sprintf("%d * 100 / %d", step, n)))
	}
	if step == 1 {
		a.reasoning = fmt.Sprintf("The user wants a plan of %d steps. I take one step in each iteration, with "+
			"several tools at once, and I know from the conversation which step is next.", n)
	}
	return a
}

// phases describes the plan in at most ten lines, whatever its length, so that
// the shared state stays small.
func phases(n, done int) []map[string]any {
	lines := min(n, 10)
	out := make([]map[string]any, lines)
	for i := range out {
		first, last := i*n/lines+1, (i+1)*n/lines
		title := fmt.Sprintf("Step %d", first)
		if last > first {
			title = fmt.Sprintf("Steps %d to %d", first, last)
		}
		out[i] = map[string]any{"title": title, "done": last <= done}
	}
	return out
}

// terms are words that the tool lookup knows.
func terms() []string {
	return []string{
		"thread",
		"run",
		"iteration",
		"record",
		"cursor",
		"head",
		"checkpoint",
		"intent",
		"fence",
		"interrupt",
	}
}
