package e2e

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-agents/holdfast/internal/testkit/wait"
)

// crowdEnv makes a process of the test binary a crowd of so many hostile clients.
const crowdEnv = "HOLDFAST_CROWD"

// crowd opens connections as hostile clients do, who come back when they are thrown out, and
// prints a line when each of them has been there. It ends when it is killed.
func crowd() error {
	n, err := strconv.Atoi(os.Getenv(crowdEnv))
	if err != nil {
		return err
	}
	addr, text := os.Getenv("HOLDFAST_CROWD_ADDR"), os.Getenv("HOLDFAST_CROWD_TEXT")
	var clients, opened sync.WaitGroup
	for range n {
		opened.Add(1)
		clients.Go(func() {
			once := sync.OnceFunc(opened.Done)
			defer once()
			for {
				conn, err := net.Dial("tcp", addr)
				if err != nil {
					return // the server has ended
				}
				_, _ = io.WriteString(conn, text) // what came of it shows in what comes
				once()
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
				wait.Pass(time.Second) // they come back as often as they may leave
			}
		})
	}
	opened.Wait()
	fmt.Println("opened")
	clients.Wait()
	return nil
}
