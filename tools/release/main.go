// Command release publishes all modules of this repository with the same version.
//
//	go -C tools run ./release tag v0.1.0          commits and tags the release, but pushes nothing
//	go -C tools run ./release proxy v0.1.0 DIR    writes the tagged modules as a module proxy
//
// During development, replace directives tell each module where the other modules are. The go
// command ignores the replace directives of a dependency, so the tagged commit has none. In the
// tagged commit, every module requires the other modules at the version of the release, and go.sum
// has their checksums. This commit is not part of any branch.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
)

const usage = `usage: release tag VERSION
       release proxy VERSION DIR`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	root, err := git(ctx, ".", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	switch {
	case len(args) == 2 && args[0] == "tag":
		return tag(ctx, root, args[1])
	case len(args) == 3 && args[0] == "proxy":
		return proxy(ctx, root, args[1], args[2])
	}
	return errors.New(usage)
}
