//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
)

// loadCommand is this program as a load generator, in a process of its own so that it can have a
// core of its own.
func loadCommand(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "open":
			return openCommand(ctx, args[1:])
		case "hold":
			return holdCommand(ctx, args[1:])
		}
	}
	return fmt.Errorf("load: open (a constant rate) or hold (connections that stay)")
}

func openCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("load open", flag.ContinueOnError)
	var o load.OpenLoop
	flags.StringVar(&o.Addr, "addr", "127.0.0.1:3000", "`address` of the server")
	flags.StringVar(&o.Path, "path", "/plaintext", "what to GET")
	flags.Float64Var(&o.Rate, "rate", 1000, "requests per second")
	flags.DurationVar(&o.Duration, "duration", 10*time.Second, "for how long")
	flags.IntVar(&o.Connections, "connections", 1000, "most requests on the wire at once")
	flags.DurationVar(&o.Patience, "patience", 2*time.Second, "when a client gives up")
	flags.DurationVar(&o.LeadIn, "lead-in", 0, "for how long before, at a quarter of the rate")
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	result, err := o.Run(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// holdCommand says "holding" once all connections are open, answers each line of stdin with the
// number of those the server has closed, and lets go at its end.
func holdCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("load hold", flag.ContinueOnError)
	var h load.Hold
	flags.StringVar(&h.Addr, "addr", "127.0.0.1:3000", "`address` of the server")
	flags.StringVar(&h.Path, "path", "/plaintext", "what to GET")
	flags.IntVar(&h.Connections, "connections", 1000, "how many")
	flags.IntVar(&h.Unread, "unread", 0, "requests to write on each without reading (0: ask once and read)")
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	// They share a core with the clients they are beside, whose latencies are measured: they come as quickly as
	// those leave them time. Where the kernel refuses, they come all the same.
	runtime.LockOSThread()
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
	held, err := h.Open(ctx)
	if err != nil {
		return err
	}
	defer held.Close()
	fmt.Println("holding")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		cut, err := held.CutOff()
		if err != nil {
			return err
		}
		fmt.Println(cut)
	}
	return nil
}
