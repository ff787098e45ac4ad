package archtest

// The language of the pages: lines that fit on a screen, sentences that name their subject
// first, and one word for one thing.

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// pageColumns is how wide a line of a page may be. A row of a table cannot be broken, and
// the lines of a block are what somebody types or a program prints.
const pageColumns = 120

var (
	// opening matches a relative clause in the place of a sentence's subject, up to the end
	// of the sentence. A question may begin so.
	opening = regexp.MustCompile(`(?:^|[.:;!?)*"“] +|\*\*|["“(])((?:Who|What|Whoever|Whatever)\b[^.?!]*)`)
	// shunned matches words that a plain subject or adverb replaces.
	shunned = regexp.MustCompile(`(?i)\b(all the same|anew|whoever)\b`)
	// quoted matches code in a sentence.
	quoted = regexp.MustCompile("``.+?``|`[^`]+`")
	// marks matches what begins a paragraph without being a part of its first sentence.
	marks = regexp.MustCompile(`^(?:[-*+>] +|\d+[.)] +)+`)
)

// TestLanguageOfPages: every page keeps to the width and to the rules above, and calls the
// things of the glossary by the glossary's words.
func TestLanguageOfPages(t *testing.T) {
	t.Parallel()
	synonyms := synonyms(t)
	pages := allPages(t)
	if len(pages) < 40 {
		t.Errorf("only %d pages were found", len(pages))
	}
	for _, page := range pages {
		text := read(t, filepath.Join(root, page))
		for word := range synonyms { // where the glossary itself says what is shunned
			text = strings.NewReplacer("| "+word+" |", "| |", "| "+word+", ", "| ", ", "+word+" |", " |").Replace(text)
		}
		for _, problem := range languageProblems(text, synonyms) {
			t.Errorf("%s: %s", page, problem)
		}
	}
}

// synonyms are the words that the glossary's words replace.
func synonyms(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, row := range table(t, "docs/architecture.md", glossaryHeader...) {
		for word := range strings.SplitSeq(row[2], ", ") {
			if word == "" {
				continue
			}
			if all[word] != "" {
				t.Errorf("the glossary has %q for both %s and %s", word, all[word], row[0])
			}
			all[word] = row[0]
		}
	}
	if len(all) == 0 {
		t.Error("the glossary says of no word what not to call it")
	}
	return all
}

// allPages are the project's Markdown files, as seen from its root.
func allPages(t *testing.T) []string {
	t.Helper()
	var pages []string
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		short, _ := filepath.Rel(root, file)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || d.Name() == "bin" ||
			strings.HasPrefix(d.Name(), ".") && short != "."):
			return fs.SkipDir
		case strings.HasSuffix(file, ".md"):
			pages = append(pages, filepath.ToSlash(short))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// languageProblems are what is wrong with the language of a page.
func languageProblems(page string, synonyms map[string]string) (problems []string) {
	problem := func(n int, format string, values ...any) {
		problems = append(problems, fmt.Sprintf("%d: ", n)+fmt.Sprintf(format, values...))
	}
	for n, line := range prose(page) {
		width := utf8.RuneCountInString(line)
		if width > pageColumns && !strings.HasPrefix(strings.TrimSpace(line), "|") {
			problem(n, "the line has %d columns, and only rows of tables and blocks may have more than %d", width,
				pageColumns)
		}
	}
	for n, text := range sentences(page) {
		for _, found := range openings(text) {
			problem(n, "begin the sentence with a plain subject: %s", found)
		}
		for _, m := range shunned.FindAllString(text, -1) {
			problem(n, "say it without %q", m)
		}
		for word, instead := range synonyms {
			if regexp.MustCompile(`(?i)\b` + regexp.QuoteMeta(word) + `s?\b`).MatchString(text) {
				problem(n, "%q is called %q in the glossary", word, instead)
			}
		}
	}
	return problems
}

// openings are the sentences of a text that open with a relative who or what. A word alone
// heads a column.
func openings(text string) (found []string) {
	for _, m := range opening.FindAllStringSubmatchIndex(text, -1) {
		if !strings.HasPrefix(text[m[3]:], "?") && strings.Contains(text[m[2]:m[3]], " ") {
			found = append(found, text[m[2]:m[3]])
		}
	}
	return found
}

// prose yields the lines of a page that are outside its blocks, with their numbers.
func prose(page string) func(func(int, string) bool) {
	return func(yield func(int, string) bool) {
		fence := ""
		n := 0
		for line := range strings.Lines(page) {
			n++
			line = strings.TrimRight(line, "\n")
			mark := strings.TrimSpace(line)
			switch {
			case fence != "":
				if mark == fence {
					fence = ""
				}
			case strings.HasPrefix(mark, "```"):
				fence = mark[:len(mark)-len(strings.TrimLeft(mark, "`"))]
			case !yield(n, line):
				return
			}
		}
	}
}

// sentences yields the paragraphs, points of lists and cells of a page without the code in
// them, with the number of the line where each begins. A heading is not a sentence, but has
// words.
func sentences(page string) func(func(int, string) bool) {
	type part struct {
		line int
		text string
	}
	var parts []part
	last := 0
	for n, line := range prose(page) {
		line = strings.TrimSpace(line)
		begins := n != last+1 || len(parts) == 0 || marks.MatchString(line)
		last = n
		switch {
		case line == "":
			last = 0
		case strings.HasPrefix(line, "#"):
			parts, last = append(parts, part{n, "the heading " + strings.TrimLeft(line, "# ")}), 0
		case strings.HasPrefix(line, "|"):
			for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
				parts, last = append(parts, part{n, strings.TrimSpace(cell)}), 0
			}
		case begins:
			parts = append(parts, part{n, marks.ReplaceAllString(line, "")})
		default:
			parts[len(parts)-1].text += " " + line
		}
	}
	return func(yield func(int, string) bool) {
		for _, p := range parts {
			if !yield(p.line, quoted.ReplaceAllString(p.text, "`code`")) {
				return
			}
		}
	}
}

// TestLanguageSeen: the test can fail.
func TestLanguageSeen(t *testing.T) {
	t.Parallel()
	synonyms := map[string]string{"savepoint": "checkpoint"}
	page := read(t, "testdata/language.md")
	want := strings.TrimSpace(read(t, "testdata/language.txt"))
	if got := strings.Join(languageProblems(page, synonyms), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
