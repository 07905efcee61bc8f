//go:build linux

// Command compare measures Dunlin and other servers and reports the results.
//
//	go run -C bench ./cmd/compare            measure all, print the tables, keep the results
//	go run -C bench ./cmd/compare -short     the same in less than three minutes, for a first look
//	go run -C bench ./cmd/compare report     write docs/BENCHMARKS.md from the newest results
//	go run -C bench ./cmd/compare diff A B   compare two files of results
//	go run -C bench ./cmd/compare gate       check the figures that Dunlin promises
//	go run -C bench ./cmd/compare profile plaintext-64 dunlin nethttp fiber
//	                                         flame graphs of servers under load, side by side
//	go run -C bench ./cmd/compare list       list the names of scenarios and peers
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// errUsage ends a command whose flags are wrong, after the message about them was printed.
var errUsage = errors.New("usage")

func main() {
	endWithGoRun()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := command(ctx, os.Args[1:])
	stop()
	switch {
	case err == nil:
	case errors.Is(err, errUsage):
		os.Exit(2)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "\ninterrupted: every process is stopped, nothing was written")
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// endWithGoRun makes the kernel interrupt this program when the "go run" that started it is killed. Without this the
// measurement would continue unnoticed, because "go run" does not forward signals.
func endWithGoRun() {
	parent, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", os.Getppid()))
	if err == nil && string(parent) == "go\n" {
		unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM), 0, 0, 0)
	}
}

func command(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "report":
			return reportCommand(args[1:])
		case "diff":
			return diffCommand(args[1:])
		case "gate":
			return gateCommand(ctx, args[1:])
		case "profile":
			return profileCommand(ctx, args[1:])
		case "list":
			return listCommand()
		case "load":
			return loadCommand(ctx, args[1:])
		}
	}
	return runCommand(ctx, args)
}
