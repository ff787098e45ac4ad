package thread

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/internal/agui"
	"github.com/holdfast-agents/holdfast/threads"
)

// Described is how a thread is listed. It is the thread's, not a checkpoint's: it stays when
// the thread goes back.
type Described struct {
	// Title is made once, from the first message; from then on only a person changes it.
	Title string `json:"title,omitempty"`
	// Hidden means that a person has put the thread away.
	Hidden bool `json:"hidden,omitempty"`
	// CreatedAt is when the thread was made.
	CreatedAt time.Time `json:"createdAt,omitzero"`
}

// MakeTitle gives a thread without a title one, made from the first message of its history
// that says anything.
func (d *Described) MakeTitle(path []agui.Message) {
	if d.Title == "" {
		d.Title = titleOf(path)
	}
}

// Describe makes a person's change.
func (d *Described) Describe(change threads.Description, path []agui.Message) {
	if change.Title != nil {
		d.Title = oneLine(*change.Title)
		d.MakeTitle(path)
	}
	if change.Hidden != nil {
		d.Hidden = *change.Hidden
	}
}

// longestTitle is how many characters a title has that is made from a message.
const longestTitle = 80

// titleOf returns the beginning of the first of the messages by a user that has any text;
// empty if there is none.
func titleOf(path []agui.Message) string {
	for i := range path {
		if path[i].Role != string(holdfast.RoleUser) {
			continue
		}
		m, err := path[i].Domain()
		if err != nil {
			continue
		}
		if title := cutTitle(oneLine(m.PlainText())); title != "" {
			return title
		}
	}
	return ""
}

// oneLine returns text with each run of white space and control characters as one space,
// and without the characters that turn the direction of what follows: a list would show
// the titles below backwards.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' {
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == utf8.RuneError
	}), " ")
}

// cutTitle cuts a text that is too long for a title, at the end of a word if one ends in
// the second half of what there is room for.
func cutTitle(text string) string {
	if utf8.RuneCountInString(text) <= longestTitle {
		return text
	}
	cut := string([]rune(text)[:longestTitle-1])
	if space := strings.LastIndexByte(cut, ' '); space > len(cut)/2 {
		cut = cut[:space]
	}
	return strings.TrimRight(cut, " ") + "…"
}
