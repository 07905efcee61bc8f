//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
)

// loadCommand runs this program as a load generator. The load generator is a separate process, so that it can have its own
// core.
func loadCommand(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "open":
			return openCommand(ctx, args[1:])
		case "hold":
			return holdCommand(ctx, args[1:])
		case "bulk":
			return bulkCommand(ctx, args[1:])
		case "h2hold":
			return h2HoldCommand(ctx, args[1:])
		case "h2attack":
			return h2AttackCommand(ctx, args[1:])
		case "sink":
			return sinkCommand(ctx, args[1:])
		case "upstream":
			return upstreamCommand(ctx, args[1:])
		case "tlsflood":
			return tlsFloodCommand(ctx, args[1:])
		case "tlsreturning":
			return tlsReturningCommand(ctx, args[1:])
		}
	}
	return fmt.Errorf("load: open (a constant rate), hold (connections that stay), bulk (much data), h2hold (streams that stay), h2attack, sink (reads and throws away), upstream (answers after a chosen time), tlsflood (handshakes without end) or tlsreturning (clients with a session)")
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

// holdCommand opens connections and prints "holding" when all are open. It answers each line of stdin with the number of
// connections that the server has closed. At the end it closes all connections.
func holdCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("load hold", flag.ContinueOnError)
	var h load.Hold
	flags.StringVar(&h.Addr, "addr", "127.0.0.1:3000", "`address` of the server")
	flags.StringVar(&h.Path, "path", "/plaintext", "what to GET")
	flags.IntVar(&h.Connections, "connections", 1000, "how many")
	flags.IntVar(&h.Unread, "unread", 0, "requests to write on each without reading (0: ask once and read)")
	flags.BoolVar(&h.TLS, "tls", false, "over TLS")
	flags.BoolVar(&h.Hello, "hello", false, "send the first half of a ClientHello only")
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	return holding(ctx, h.Open, (*load.Held).CutOff)
}

func bulkCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("load bulk", flag.ContinueOnError)
	var b load.Bulk
	flags.StringVar(&b.Addr, "addr", "127.0.0.1:3000", "`address` of the server")
	flags.StringVar(&b.Path, "path", "/bulk", "what to GET or POST")
	flags.Int64Var(&b.Bytes, "bytes", 1_000_000_000, "how many")
	flags.BoolVar(&b.Up, "up", false, "send them, instead of asking for them")
	flags.BoolVar(&b.TLS, "tls", false, "over TLS")
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	return b.Run(ctx)
}

// stepBack lowers the priority of a thread, so that the thread runs only while the clients whose latencies are measured leave
// their core idle. thread is an ID, or 0 for the current thread. If the kernel refuses the priority, the thread runs normally.
func stepBack(thread int) {
	_ = unix.SchedSetAttr(thread, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
}

// holding calls open, prints "holding", and answers each line of stdin with the result of count.
func holding[H interface{ Close() }](ctx context.Context, open func(context.Context) (H, error), count func(H) (int, error)) error {
	runtime.LockOSThread()
	stepBack(0)
	held, err := open(ctx)
	if err != nil {
		return err
	}
	defer held.Close()
	fmt.Println("holding")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		cut, err := count(held)
		if err != nil {
			return err
		}
		fmt.Println(cut)
	}
	return nil
}

// h2HoldCommand is holdCommand for HTTP/2 streams. It counts the streams that have ended.
func h2HoldCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("load h2hold", flag.ContinueOnError)
	var h load.H2Hold
	flags.StringVar(&h.Addr, "addr", "127.0.0.1:3000", "`address` of the server")
	flags.StringVar(&h.Path, "path", "/sleep?ms=60000", "what to GET")
	flags.IntVar(&h.Connections, "connections", 100, "how many")
	flags.IntVar(&h.Streams, "streams", 100, "of each connection")
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	over := 0
	return holding(ctx, h.Open, func(held *load.H2Held) (int, error) {
		n, err := held.Answered()
		over += n
		return over, err
	})
}

// h2AttackCommand attacks a server over HTTP/2 in clear text, and prints the counts.
func h2AttackCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("load h2attack", flag.ContinueOnError)
	var a load.H2Attack
	flags.StringVar(&a.Addr, "addr", "127.0.0.1:3000", "`address` of the server")
	flags.StringVar(&a.Kind, "kind", load.H2AttackKinds[0], strings.Join(load.H2AttackKinds, ", "))
	flags.IntVar(&a.Rate, "rate", 100_000, "steps a second")
	flags.IntVar(&a.Connections, "connections", 4, "at once")
	flags.DurationVar(&a.Duration, "duration", 10*time.Second, "for how long")
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	allStepBack()
	result, err := a.Run(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

func sinkCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("load sink", flag.ContinueOnError)
	var s load.Sink
	flags.StringVar(&s.Addr, "addr", "127.0.0.1:3001", "`address` to listen on")
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	return s.Run(ctx)
}

// upstreamCommand runs an upstream server and prints its address.
func upstreamCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("load upstream", flag.ContinueOnError)
	u := load.Upstream{Ready: func(addr net.Addr) { fmt.Println(addr) }}
	flags.StringVar(&u.Addr, "addr", "127.0.0.1:3001", "`address` to listen on")
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	return u.Run(ctx)
}

// allStepBack calls stepBack for all threads of the process.
func allStepBack() {
	// Threads that start later inherit the priority. The threads that exist were started by the runtime.
	threads, _ := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		if id, err := strconv.Atoi(thread.Name()); err == nil {
			stepBack(id)
		}
	}
}

// tlsFloodCommand floods a server with TLS handshakes that it does not complete, and prints their number.
func tlsFloodCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("load tlsflood", flag.ContinueOnError)
	var f load.TLSFlood
	flags.StringVar(&f.Addr, "addr", "127.0.0.1:3000", "`address` of the server")
	flags.IntVar(&f.Rate, "rate", 10_000, "connections a second")
	flags.DurationVar(&f.Duration, "duration", 10*time.Second, "for how long")
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	allStepBack()
	result, err := f.Run(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// tlsReturningCommand prints "holding" when its client has a session. For each line of stdin, the client reconnects with this
// session, and the command prints the times until the responses.
func tlsReturningCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("load tlsreturning", flag.ContinueOnError)
	var r load.TLSReturning
	flags.StringVar(&r.Addr, "addr", "127.0.0.1:3000", "`address` of the server")
	flags.StringVar(&r.Path, "path", "/plaintext", "what to GET")
	flags.DurationVar(&r.Pause, "pause", 2*time.Millisecond, "between two connections")
	flags.DurationVar(&r.Patience, "patience", 2*time.Second, "when a client gives up")
	flags.DurationVar(&r.Duration, "duration", 10*time.Second, "for how long")
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	if err := r.Open(); err != nil {
		return err
	}
	fmt.Println("holding")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		result, err := r.Run(ctx)
		if err == nil {
			err = json.NewEncoder(os.Stdout).Encode(result)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
