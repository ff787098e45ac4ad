package audit

import (
	"slices"

	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/internal/thread"
	"github.com/holdfast-agents/holdfast/store"
)

// The checks of a thread's log: that no number is missing, that each run's events are a legal
// stream, and that what the head and the checkpoints name is archived.

// log checks the thread's log: the live part and the archived part.
func (a *audit) log() {
	starts := a.starts()
	archived := a.archives(starts)
	live := a.head.Next // the first live record
	if len(a.records) > 0 {
		live = a.records[0].Number
		a.liveLog(starts)
		a.streams()
	}
	for _, first := range archived {
		if first >= live {
			a.add("archive_gap", "the record %d is both in the live log and in an archive", first)
		}
	}
	a.needed(archived, live)
}

// starts returns the numbers of the records with which runs begin, in order. A run that was
// copied into a fork begins with none.
func (a *audit) starts() []uint64 {
	var starts []uint64
	for _, rec := range a.runs {
		if first := rec.After.Number + 1; first < a.head.Next {
			starts = append(starts, first)
		}
	}
	slices.Sort(starts)
	return slices.Compact(starts)
}

// liveLog checks the numbers of the live log, and under which fence it ends.
func (a *audit) liveLog(starts []uint64) {
	first := &a.records[0]
	if _, begins := slices.BinarySearch(starts, first.Number); !begins ||
		agui.TypeOf(first.Data) != agui.TypeRunStarted {
		a.add("log_gap", "the live log begins with record %d, with which no run begins", first.Number)
	}
	for i := 1; i < len(a.records); i++ {
		if before := a.records[i-1].Number; a.records[i].Number != before+1 {
			a.add("log_gap", "after record %d the log has record %d", before, a.records[i].Number)
		}
	}
	last := a.records[len(a.records)-1].Cursor
	switch {
	case last.Number+1 != a.head.Next:
		a.add("log_gap", "the log ends with record %d, the head says %d", last.Number, a.head.Next-1)
	case last.Tag != a.head.Fence.Tag():
		a.add("log_tag", "the last record %s was not written under the head's fence, %s", last, a.head.Fence.Tag())
	}
	at := a.st.Boundary
	if a.st.Running() && !slices.ContainsFunc(a.records, func(r store.Record) bool { return r.Cursor == at }) {
		a.add("boundary_wrong", "the history ends at record %s, which the log does not hold", at)
	}
}

// streams checks the events of the live log: each is known, and each run's are a legal
// stream.
func (a *audit) streams() {
	for i := range a.records {
		if _, err := thread.EventOf(a.records[i].Data); err != nil {
			a.add("event_unreadable", "record %s: %v", a.records[i].Cursor, err)
			return
		}
	}
	for _, run := range thread.ByRun(a.records) {
		var events []agui.Event
		for i := range run.Records {
			if ev, err := thread.EventOf(run.Records[i].Data); err == nil {
				events = append(events, ev)
			}
		}
		if a.st.Running() && run.ID == a.st.Run() {
			events = append(events, agui.RunError{}) // the end that a cut-off would give it
		}
		if err := agui.Verify(slices.Values(events)); err != nil {
			a.add("stream_illegal", "the log of run %s: %v", run.ID, err)
		}
	}
}

// archives checks the archived logs, and returns the numbers of their first records.
func (a *audit) archives(starts []uint64) []uint64 {
	var firsts []uint64
	for _, v := range a.values[store.KindLog] {
		log := &thread.ArchivedLog{}
		if err := thread.Decode(v.Data, log); err != nil {
			a.cannotRead("archive", "the archive of run "+v.ID, err)
			continue
		}
		firsts = append(firsts, log.First)
		texts, err := log.Texts(a.everything.messages)
		if err != nil {
			texts = &thread.Texts{} // it was reported
		}
		if problem := log.Check(v.ID, texts); problem != "" {
			a.add("archive_damaged", "the archive of run %s: %s", v.ID, problem)
			continue
		}
		i, begins := slices.BinarySearch(starts, log.First)
		if rec := a.runs[v.ID]; !begins || rec == nil || rec.After.Number+1 != log.First {
			a.add("archive_gap", "the archive of run %s begins with record %d, with which the run does not begin",
				v.ID, log.First)
			continue
		}
		next := a.head.Next
		if i+1 < len(starts) {
			next = starts[i+1]
		}
		if end := log.First + log.Count(); end != next {
			a.add("archive_gap", "the archive of run %s ends before record %d, the next one is %d", v.ID, end, next)
		}
	}
	return firsts
}

// needed checks that the logs of the runs that the head and the checkpoints name are there:
// they are never pruned.
func (a *audit) needed(archived []uint64, live uint64) {
	seen := map[string]bool{}
	states := []*thread.State{a.st}
	for _, cp := range a.checkpoints {
		states = append(states, cp.State)
	}
	for _, st := range states {
		rec := a.runs[st.Run()]
		if rec == nil || seen[st.Run()] {
			continue
		}
		seen[st.Run()] = true
		first := rec.After.Number + 1
		copied := a.st.Origin != nil && first == 1 // into a fork, without its log
		if !copied && first < live && !slices.Contains(archived, first) {
			a.add("log_missing", "the log of run %s, from record %d on, is not there", st.Run(), first)
		}
	}
}
