package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/holdfast-agents/holdfast/offline"
	"github.com/holdfast-agents/holdfast/store"
)

// export writes a thread as JSON, to a new file or to standard output.
func (c *storeCommand) export(args []string) error {
	f := c.flags("export")
	file := f.String("o", "", "the file to write, which must not exist yet; default standard output")
	if _, err := c.parse(f, args); err != nil {
		return err
	}
	if c.thread == "" {
		return errors.New("which thread? --thread ID; holdfast inspect lists them")
	}
	return c.on(func(ctx context.Context, store store.Store) error {
		if *file == "" {
			return offline.Export(ctx, store, c.key(), c.stdout)
		}
		return writeNew(*file, func(w io.Writer) error { return offline.Export(ctx, store, c.key(), w) })
	})
}

// writeNew writes a file that must not exist yet; if it cannot be written completely, it
// is removed again. The file is as private as a store.
func writeNew(path string, write func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("make the file: %w", err)
	}
	w := bufio.NewWriter(file)
	err = errors.Join(write(w), w.Flush(), file.Close())
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// importThread makes a thread from an exported one.
func (c *storeCommand) importThread(args []string) error {
	f := c.flags("import")
	f.Lookup("thread").Usage = "the thread's name in the store; default as in FILE"
	f.Lookup("tenant").Usage = "the tenant that the thread will belong to; default as in FILE"
	f.Lookup("tenant").DefValue, c.tenant = "", ""
	others, err := c.parse(f, args, "FILE")
	if err != nil {
		return err
	}
	file, err := os.Open(others[0])
	if err != nil {
		return fmt.Errorf("read the thread: %w", err)
	}
	defer file.Close()
	c.store.Create = true
	return c.on(func(ctx context.Context, store store.Store) error {
		key, err := offline.Import(ctx, store, c.key(), bufio.NewReader(file))
		if err != nil {
			return err
		}
		fmt.Fprintf(c.stdout, "%s imported\n", printable(key.String()))
		return nil
	})
}
