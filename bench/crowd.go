package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
)

// The crowd of a hostile tenant is a process of its own, and lets the measuring client go
// first: it stands for clients on other machines, whose work must not show in what is measured
// here.

// startCrowd starts the clients of the attack with that name on a server. They end with stop, or
// with this program.
func startCrowd(attack, url string, clients int) (stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("nice", "-n", "10", self, "-serve", "crowd", "-addr", url, "-only", attack, "-crowd",
		strconv.Itoa(clients))
	cmd.Stderr = os.Stderr
	leash, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	begun, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() error { return errors.Join(leash.Close(), cmd.Wait()) }
	if _, err := io.ReadFull(begun, make([]byte, 1)); err != nil {
		return nil, errors.Join(fmt.Errorf("the crowd did not begin: %w", err), stop())
	}
	return stop, nil
}
