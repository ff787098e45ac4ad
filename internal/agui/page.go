package agui

import "iter"

// Page is a part of a run's log, as it is stored now.
type Page struct {
	// Frames yields the page's frames in batches, each with the id of its record. After an
	// error it yields nothing more.
	Frames iter.Seq2[[]Frame, error]
	// Next is the cursor of the page's last record, if the log has more; empty otherwise.
	Next string
	// Ended means that the run has ended and nothing comes after the page.
	Ended bool
}
