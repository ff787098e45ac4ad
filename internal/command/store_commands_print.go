package command

// How inspect and replay print a thread, with everything removed from its texts that
// could command a terminal.

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/holdfast-agents/holdfast/offline"
)

// printThread prints a thread in a form that people can read.
func printThread(w io.Writer, in *offline.Inspection) {
	table := newTable(w)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(table, "%s\t%s\n", name, printable(fmt.Sprintf(format, args...)))
	}
	row("thread", "%s", in.Key)
	row("user", "%s", in.User)
	row("status", "%s", joined(" ", in.Status, inBrackets(joined(" ", string(in.Outcome), in.Code))))
	if in.Text != "" {
		row("error", "%s", in.Text)
	}
	row("agent", "%s, iteration %d", in.Agent, in.Iteration)
	row("last run", "%s", in.Run)
	if in.Parent != "" {
		row("forked from", "%s", joined(" at checkpoint ", in.Parent, in.ParentCheckpoint))
	}
	if in.Owner != "" {
		row("owner", "%s", in.Owner)
	}
	row("last active", "%s", clock(in.UpdatedAt))
	row("etag", "%s", in.ETag)
	if cp := in.Shown; cp != nil {
		row("shown at", "checkpoint %s, %s, before iteration %d", cp.ID, clock(cp.CreatedAt), cp.Iteration)
	}
	flush(table)
	printHistory(w, in)
	if in.State != nil {
		fmt.Fprintf(w, "\nshared state\n  %s\n", printable(string(in.State)))
	}
	if in.Middleware != nil {
		fmt.Fprintf(w, "\nmiddleware state\n  %s\n", printable(string(in.Middleware)))
	}
	printCalls(w, in)
	printCheckpoints(w, in)
	printRuns(w, in)
	printSizes(w, in)
	if len(in.Problems) > 0 {
		fmt.Fprintln(w, "\nproblems")
		for _, p := range in.Problems {
			fmt.Fprintf(w, "  %s: %s\n", p.What, printable(p.Detail))
		}
	}
}

// flush ends a table. If that cannot be written, there is nowhere to report it.
func flush(table interface{ Flush() error }) { _ = table.Flush() }

func printHistory(w io.Writer, in *offline.Inspection) {
	fmt.Fprintf(w, "\nhistory, %s\n", count(len(in.History), "message"))
	printMessages(w, in.History)
}

func printMessages(w io.Writer, messages []offline.Message) {
	for _, m := range messages {
		role := m.Role
		if m.CallID != "" {
			role += " " + m.CallID
		}
		fmt.Fprintf(w, "  %s: %s\n", printable(role), indented(m.Text))
		for _, c := range m.Calls {
			fmt.Fprintf(w, "    calls %s %s (%s)\n", printable(c.Tool), indented(c.Arguments), printable(c.ID))
		}
	}
}

// printCalls prints what is not finished.
func printCalls(w io.Writer, in *offline.Inspection) {
	if len(in.Open) > 0 {
		fmt.Fprintln(w, "\nopen calls")
	}
	for _, c := range in.Open {
		waits := ""
		if c.Interrupt != "" {
			waits = " waits for an answer to " + c.Interrupt
		}
		fmt.Fprintf(w, "  %s\n", printable(c.Tool+" ("+c.ID+")"+waits))
	}
	if len(in.Intents) > 0 {
		fmt.Fprintln(w, "\nintents: calls that were about to start")
	}
	for _, i := range in.Intents {
		fmt.Fprintf(w, "  %s\n", printable(fmt.Sprintf("%s (%s) at %s, key %s", i.Tool, i.CallID, clock(i.At), i.Key)))
	}
	if len(in.Pending) > 0 {
		fmt.Fprintln(w, "\npending writes: results that no checkpoint holds")
	}
	for _, p := range in.Pending {
		fmt.Fprintf(w, "  %s\n", printable(fmt.Sprintf("%s (%s) at %s, message %s", p.Tool, p.CallID,
			clock(p.CompletedAt), p.Message)))
	}
}

func printCheckpoints(w io.Writer, in *offline.Inspection) {
	if len(in.Checkpoints) == 0 {
		return
	}
	fmt.Fprintln(w, "\ncheckpoints")
	table := newTable(w)
	fmt.Fprintln(table, "  ID\tTAKEN\tSOURCE\tSTEP\tSTATUS\tMESSAGES\tLABEL")
	for _, cp := range in.Checkpoints {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%d\t%s\t%d\t%s\n", cp.ID, clock(cp.CreatedAt), cp.Metadata.Source,
			cp.Metadata.Step, cp.Status, cp.Messages, printable(cp.Metadata.Label))
	}
	flush(table)
}

func printRuns(w io.Writer, in *offline.Inspection) {
	if len(in.Runs) == 0 {
		return
	}
	fmt.Fprintln(w, "\nruns")
	table := newTable(w)
	fmt.Fprintln(table, "  ID\tAGENT\tREVISION\tSTARTED\tENDED\tOUTCOME\tCONTINUES")
	for _, r := range in.Runs {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\n", printable(r.ID), printable(r.Agent),
			printable(cmp.Or(r.Revision, "-")), clock(r.StartedAt), clock(r.EndedAt),
			joined(" ", cmp.Or(string(r.Outcome), "-"), r.Code), printable(r.Continues))
	}
	flush(table)
}

func printSizes(w io.Writer, in *offline.Inspection) {
	fmt.Fprintln(w, "\nbytes")
	table := newTable(w)
	for _, kind := range slices.Sorted(maps.Keys(in.Size)) {
		fmt.Fprintf(table, "  %s\t%d\n", kind, in.Size[kind])
	}
	fmt.Fprintf(table, "  all\t%d\n", in.Bytes)
	flush(table)
}

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}

// joined joins the parts that are not empty.
func joined(by string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), by)
}

// indented returns a text whose lines are indented, so that its end can be seen.
func indented(text string) string { return strings.ReplaceAll(printable(text), "\n", "\n    ") }

const zeroWidthJoiner = '\u200d'

// printable removes what would command a terminal: an operator is shown what users and
// models have written.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == zeroWidthJoiner: // the last one is part of many emoji
			return r
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
