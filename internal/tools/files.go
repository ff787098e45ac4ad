package tools

// The tools list_files and read_file: read-only access to the files below one directory.
// Nothing leads out of it, neither .. nor a symbolic link, also not one that is put there
// while a file is opened: the system opens names relative to the directory (os.Root).

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-agents/holdfast"
)

// FilesOptions configure the tools of [Files].
type FilesOptions struct {
	// Directory is the directory that can be read.
	Directory string `json:"directory"`
	// Prefix comes before the names of the tools; default none.
	Prefix string `json:"prefix,omitempty"`
	// MaxBytes is how much of a file one call reads at most; default 64 KiB.
	MaxBytes int `json:"maxBytes,omitempty"`
	// MaxEntries is how many entries of a directory one call lists at most; default 500.
	MaxEntries int `json:"maxEntries,omitempty"`
}

const (
	defaultFileBytes   = 64 << 10
	defaultFileEntries = 500
	// chunk is how many entries of a directory are read at a time.
	chunk = 250
)

// FileTools are the tools list_files and read_file.
type FileTools struct {
	// Tools are both of them, after the prefix.
	Tools []holdfast.Tool
	root  *os.Root
}

// Files opens the directory and returns the tools that read it. Close them in the end.
func Files(o FilesOptions) (*FileTools, error) {
	if o.Directory == "" {
		return nil, errors.New("directory: name the directory that can be read")
	}
	if o.MaxBytes < 0 || o.MaxEntries < 0 {
		return nil, errors.New("maxBytes, maxEntries: they cannot be negative")
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultFileBytes
	}
	if o.MaxEntries == 0 {
		o.MaxEntries = defaultFileEntries
	}
	root, err := os.OpenRoot(o.Directory)
	if err != nil {
		return nil, fmt.Errorf("directory: %w", err)
	}
	f := &files{FilesOptions: o, root: root}
	return &FileTools{root: root, Tools: []holdfast.Tool{
		holdfast.NewTool(o.Prefix+"list_files",
			"Lists a directory: names of directories end in /, files have their size in bytes.", f.list,
			holdfast.WithEffect(holdfast.EffectPure)),
		holdfast.NewTool(o.Prefix+"read_file", "Reads a text file, large ones in pieces.", f.read,
			holdfast.WithEffect(holdfast.EffectPure)),
	}}, nil
}

// Close closes the directory.
func (f *FileTools) Close() error { return f.root.Close() }

type files struct {
	FilesOptions
	root *os.Root
}

type listArgs struct {
	Path  string `json:"path,omitempty" jsonschema:"a directory, like docs; left out, the one that everything is in"`
	After string `json:"after,omitempty" jsonschema:"list what comes after this name"`
}

func (f *files) list(ctx context.Context, args listArgs) (string, error) {
	path := args.Path
	if path == "" {
		path = "."
	}
	d, err := f.open(path)
	if err != nil {
		return "", err
	}
	defer d.Close()
	entries, total, err := f.page(ctx, d, args.After)
	if err != nil {
		return "", readable(path, err)
	}
	if total == 0 {
		return "There is nothing.", nil
	}
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(describeEntry(e) + "\n")
	}
	if more := total - len(entries); more > 0 {
		fmt.Fprintf(&b, "[%d more: list them with after %q]\n", more, entries[len(entries)-1].Name())
	}
	return b.String(), nil
}

// page returns the first entries after a name, in the order of their names, and how many
// there are. Directories have no order and may be large, so it keeps only a few pages.
func (f *files) page(ctx context.Context, d *os.File, after string) (entries []fs.DirEntry, total int, err error) {
	first := func(entries []fs.DirEntry) []fs.DirEntry {
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		return entries[:min(len(entries), f.MaxEntries)]
	}
	for {
		next, err := d.ReadDir(chunk)
		for _, e := range next {
			if e.Name() > after {
				entries = append(entries, e)
				total++
			}
		}
		if len(entries) > chunk+f.MaxEntries {
			entries = first(entries)
		}
		switch {
		case errors.Is(err, io.EOF):
			return first(entries), total, nil
		case err != nil:
			return nil, 0, err
		case ctx.Err() != nil:
			return nil, 0, context.Cause(ctx)
		}
	}
}

func describeEntry(e fs.DirEntry) string {
	name := e.Name()
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		name = strconv.Quote(name)
	}
	switch info, err := e.Info(); {
	case e.IsDir():
		return name + "/"
	case e.Type()&fs.ModeSymlink != 0:
		return name + " (a link)"
	case err != nil || !e.Type().IsRegular():
		return name + " (no file that can be read)"
	default:
		return fmt.Sprintf("%s %d", name, info.Size())
	}
}

type readArgs struct {
	Path   string `json:"path" jsonschema:"a file, like docs/plan.md"`
	Offset int64  `json:"offset,omitempty" jsonschema:"the byte to begin at; 0 is the first"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many bytes to read at most"`
}

func (f *files) read(_ context.Context, args readArgs) (string, error) {
	if args.Offset < 0 || args.Limit < 0 {
		return "", errors.New("offset and limit must not be negative")
	}
	limit := f.MaxBytes
	if args.Limit > 0 {
		limit = min(args.Limit, limit)
	}
	file, err := f.open(args.Path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return "", readable(args.Path, err)
	case info.IsDir():
		return "", fmt.Errorf("%s is a directory: use %slist_files", args.Path, f.Prefix)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is no file that can be read", args.Path)
	case args.Offset > info.Size():
		return "", fmt.Errorf("%s has only %d bytes", args.Path, info.Size())
	}
	piece := make([]byte, limit)
	n, err := file.ReadAt(piece, args.Offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", readable(args.Path, err)
	}
	return show(args, piece[:n], info.Size())
}

// show returns a piece of a file with a note of where it goes on. It ends with a line, if
// it has one, or else with a whole character.
func show(args readArgs, piece []byte, size int64) (string, error) {
	skipped := 0
	for ; skipped < len(piece) && skipped < utf8.UTFMax && args.Offset > 0 &&
		!utf8.RuneStart(piece[skipped]); skipped++ {
	}
	more := args.Offset+int64(len(piece)) < size
	if end := bytes.LastIndexByte(piece, '\n'); more && end >= 0 {
		piece = piece[:end+1]
	} else if more {
		piece = wholeCharacters(piece)
	}
	text := piece[min(skipped, len(piece)):]
	if bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text) {
		return "", fmt.Errorf("%s is not a text in UTF-8, so it is not shown", args.Path)
	}
	next := args.Offset + int64(len(piece))
	if next < size && len(piece) == 0 {
		return "", errors.New("limit is too small for the next character")
	}
	if next < size {
		return fmt.Sprintf("%s\n[%d of %d bytes; go on with offset %d]", text, next, size, next), nil
	}
	if len(text) == 0 {
		return "[nothing more]", nil
	}
	return string(text), nil
}

// wholeCharacters leaves out a character at the end that is not complete.
func wholeCharacters(b []byte) []byte {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}

// open opens a file or directory. It does not touch a pipe or device, whose other end would
// notice, and if one is put in its place meanwhile, it does not wait for it.
func (f *files) open(path string) (*os.File, error) {
	info, err := f.root.Stat(path)
	if err != nil {
		return nil, readable(path, err)
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file that can be read", path)
	}
	file, err := f.root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, readable(path, err)
	}
	return file, nil
}

// readable says what is wrong without saying where the directory is.
func readable(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no %q", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%q may not be read", path)
	}
	return fmt.Errorf("%q cannot be read here; write a path like docs/plan.md, without .. and without "+
		"a slash at its beginning", path)
}
