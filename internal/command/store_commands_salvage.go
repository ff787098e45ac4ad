package command

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfast-agents/holdfast/offline"
)

// salvage saves what is whole of a damaged embedded store, and prints a line for everything
// that is not.
func (c *storeCommand) salvage(args []string) error {
	values, err := c.parse(c.flags("salvage"), args, "DIR")
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	losses := 0
	threads, err := offline.Salvage(ctx, c.store, values[0], func(l offline.Loss) {
		losses++
		fmt.Fprintf(c.stdout, "%s %s: %s\n", l.What, printable(l.Name), printable(l.Reason))
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "%s saved to %s, %d not whole; look at it with: holdfast check %s\n",
		count(threads, "thread"), values[0], losses, values[0])
	if losses > 0 {
		return errProblems
	}
	return nil
}
