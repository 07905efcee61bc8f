//go:build linux

package scenario

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dunlinhttp/dunlin/bench/internal/database"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/proc"
)

// A backend holds the upstreams of the servers of a run: a database, and a server that answers after a chosen time.
type backend struct {
	database *database.Server // nil: none
	upstream *proc.Process    // nil: none
	addr     string           // address of upstream
}

// StartBackend starts the upstreams on the core of the load, if a peer uses them. Without PostgreSQL it returns
// [database.ErrMissing], and the peers have an upstream server only.
func (e *Env) StartBackend(ctx context.Context, peers []peer.Peer) error {
	if !slices.ContainsFunc(peers, func(p peer.Peer) bool { return p.Backend }) {
		return nil
	}
	out, in := io.Pipe()
	process, err := proc.Start(ctx, proc.Command{
		Path: e.Self, Args: []string{"load", "upstream", "-addr", "127.0.0.1:0"}, Cores: e.Cores.Load, Out: in,
	})
	if err != nil {
		return err
	}
	go func() {
		process.Wait()
		in.Close()
	}()
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		process.Stop()
		return fmt.Errorf("start the upstream server: %w%s", err, quote(process.Output()))
	}
	e.backend.upstream, e.backend.addr = process, strings.TrimSpace(addr)
	e.backend.database, err = database.Start(ctx, e.Cores.Load)
	return err
}

// Close stops the processes of StartBackend.
func (e *Env) Close() {
	if e.backend.database != nil {
		e.backend.database.Stop()
	}
	if e.backend.upstream != nil {
		e.backend.upstream.Stop()
	}
	e.backend = backend{}
}

// DatabaseVersion returns the name and version of the database, "" if there is none.
func (e *Env) DatabaseVersion() string {
	if e.backend.database == nil {
		return ""
	}
	return "PostgreSQL " + e.backend.database.Version
}

// WithoutDatabase reports whether an error of StartBackend affects only the scenarios on the database.
func WithoutDatabase(err error) bool { return errors.Is(err, database.ErrMissing) }

// args returns the arguments that give a peer its upstreams.
func (b *backend) args(p peer.Peer) []string {
	if !p.Backend || b.upstream == nil {
		return nil
	}
	args := []string{"-upstream", b.addr}
	if b.database != nil {
		args = append(args, "-database", b.database.URL)
	}
	return args
}

// rows returns the rows of the database, nil if there is none.
func (b *backend) rows() peer.Rows {
	if b.database == nil {
		return nil
	}
	return b.database
}
