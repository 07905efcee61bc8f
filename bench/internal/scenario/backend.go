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

// A backend has the upstream servers that the peers of a run use: a database, and a server that answers after a
// given time.
type backend struct {
	database *database.Server // nil if there is no database
	upstream *proc.Process    // nil if there is no such server
	addr     string           // address of upstream
}

// StartBackend starts the upstream servers on the core of the load, if a peer uses them. If PostgreSQL is not
// installed, it returns [database.ErrMissing], and only the other upstream server runs.
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

// DatabaseVersion returns the name and the version of the database. It is empty if there is no database.
func (e *Env) DatabaseVersion() string {
	if e.backend.database == nil {
		return ""
	}
	return "PostgreSQL " + e.backend.database.Version
}

// WithoutDatabase reports whether err, an error of StartBackend, affects only the scenarios that use the database.
func WithoutDatabase(err error) bool { return errors.Is(err, database.ErrMissing) }

// args returns the arguments that tell a peer the addresses of the upstream servers.
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

// rows returns the rows of the database, or nil if there is no database.
func (b *backend) rows() peer.Rows {
	if b.database == nil {
		return nil
	}
	return b.database
}
