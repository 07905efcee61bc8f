//go:build linux

// Package database starts a PostgreSQL server with the tables of the TechEmpower benchmarks, for the time of a run.
package database

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dunlinhttp/dunlin/bench/internal/proc"
)

// ErrMissing reports that PostgreSQL is not installed.
var ErrMissing = errors.New("PostgreSQL is not installed (Debian: apt-get install postgresql)")

const startTimeout = 20 * time.Second

// Server is a running PostgreSQL server with its own data folder.
type Server struct {
	URL     string // in the form of a connection string
	Version string

	process *proc.Process
	folder  string
	conn    *pgx.Conn
}

// Start creates a database in a temporary folder and serves it on a free port of 127.0.0.1, on the given cores. The
// server does not wait for the disk (fsync is off). If this program runs as root, the server runs as the user postgres,
// because PostgreSQL refuses to run as root.
func Start(ctx context.Context, cores []int) (*Server, error) {
	initdb, err := find("initdb")
	if err != nil {
		return nil, err
	}
	postgres, err := find("postgres")
	if err != nil {
		return nil, err
	}
	as, err := account()
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	folder, err := os.MkdirTemp("", "dunlin-bench-postgres-*")
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	s := &Server{folder: folder}
	if as != nil {
		err = os.Chown(folder, int(as.Uid), int(as.Gid))
	}
	if err == nil {
		err = s.start(ctx, initdb, postgres, as, cores)
	}
	if err != nil {
		s.Stop()
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, initdb, postgres string, as *syscall.Credential, cores []int) error {
	_, err := proc.Run(ctx, proc.Command{
		Path: initdb, Args: []string{"-D", s.folder, "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"},
		Dir: s.folder, As: as,
	})
	if err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	args := []string{"-D", s.folder, "-p", port, "-h", "127.0.0.1", "-k", ""}
	for _, setting := range []string{"fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=200"} {
		args = append(args, "-c", setting)
	}
	if s.process, err = proc.Start(ctx, proc.Command{Path: postgres, Args: args, Dir: s.folder, As: as, Cores: cores}); err != nil {
		return err
	}
	s.URL = "postgres://bench@127.0.0.1:" + port + "/postgres?sslmode=disable"
	if err := s.connect(ctx); err != nil {
		return err
	}
	s.Version = s.conn.PgConn().ParameterStatus("server_version")
	_, err = s.conn.Exec(ctx, tables, pgx.QueryExecModeSimpleProtocol)
	return err
}

// connect connects to the server and returns when the server answers.
func (s *Server) connect(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		conn, err := pgx.Connect(waiting, s.URL)
		if err == nil {
			s.conn = conn
			return nil
		}
		select {
		case <-waiting.Done():
			return errors.Join(err, waiting.Err())
		case <-s.process.Done():
			return fmt.Errorf("PostgreSQL has ended: %s", s.process.Output())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Number returns the current random number of the row with the given ID.
func (s *Server) Number(ctx context.Context, table string, id int32) (n int32, err error) {
	err = s.conn.QueryRow(ctx, "SELECT randomnumber FROM "+pgx.Identifier{table}.Sanitize()+" WHERE id = $1", id).Scan(&n)
	return n, err
}

// Stop ends the server and removes its data.
func (s *Server) Stop() {
	if s.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		s.conn.Close(ctx)
		cancel()
	}
	if s.process != nil {
		s.process.Stop()
	}
	os.RemoveAll(s.folder)
}

// find returns the path of a program of PostgreSQL. Debian keeps these programs outside of the PATH. If several
// versions are installed, find returns the newest.
func find(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + program)
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	if len(found) == 0 {
		return "", ErrMissing
	}
	return slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) }), nil
}

// account returns the user postgres if this program runs as root, and otherwise nil.
func account() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}

func freePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	return port, err
}
