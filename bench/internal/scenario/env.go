//go:build linux

// Package scenario defines what is measured. Each kind of scenario has a file, and All lists all scenarios.
package scenario

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dunlinhttp/dunlin/bench/internal/layout"
	"github.com/dunlinhttp/dunlin/bench/internal/load"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/proc"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

// Env is the environment in which scenarios run.
type Env struct {
	Folders  layout.Folders
	Cores    proc.Placement
	Duration time.Duration // duration of one measurement, unless a scenario needs more time
	Short    bool          // use fewer clients and shorter waits, for a first look
	Self     string        // path of this program, which is also a load generator

	backend  backend
	settling errgroup.Group
	recorded map[[2]string]results.Series // by the names of the scenario and the peer
}

const (
	warmUp       = 200 * time.Millisecond
	startTimeout = 10 * time.Second
)

// A server is a peer that was started.
type server struct {
	*proc.Process
	addr string
	tls  bool
	h2   bool
}

// start starts the peer on a free port, and returns when the peer answers.
func (e *Env) start(ctx context.Context, p peer.Built, cores []int, more ...string) (*server, error) {
	s, err := e.launch(ctx, p, cores, more...)
	if err != nil {
		return nil, err
	}
	if err := e.answers(ctx, s); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// answers waits until the server answers.
func (e *Env) answers(ctx context.Context, s *server) error {
	waiting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	go func() {
		select {
		case <-s.Done(): // the server has ended
			cancel()
		case <-waiting.Done():
		}
	}()
	first := load.FirstAnswer
	switch {
	case s.h2:
		first = load.FirstAnswerH2(s.tls)
	case s.tls:
		first = load.FirstAnswerTLS
	}
	if err := first(waiting, s.addr, "/healthz"); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("it does not answer%s", quote(s.Output()))
	}
	return nil
}

// launch starts the peer on a free port. It does not wait until the peer answers.
func (e *Env) launch(ctx context.Context, p peer.Built, cores []int, more ...string) (*server, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	command, err := p.Command(addr, cores, append(e.backend.args(p.Peer), more...)...)
	if err != nil {
		return nil, err
	}
	process, err := proc.Start(ctx, command)
	if err != nil {
		return nil, err
	}
	return &server{process, addr, p.TLS, p.H2}, nil
}

// quote returns the first line of the output of a process, for an error. A usage text or a stack trace may follow
// this line.
func quote(output string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(output), "\n")
	if line == "" {
		return ""
	}
	return "; it said: " + line
}

func freeAddr() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

// Verify starts the peer and runs the checks that the peer is expected to pass. It returns the checks that failed,
// with the reasons.
func (e *Env) Verify(ctx context.Context, p peer.Built) (map[string]string, error) {
	s, err := e.start(ctx, p, nil)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	return peer.Verify(ctx, p.Peer, s.addr, e.backend.rows())
}

// wrk runs w for d. If wrk itself fails, it returns an error, and the round fails.
func (e *Env) wrk(ctx context.Context, w load.Wrk, s *server, cores []int, d time.Duration) (load.WrkResult, error) {
	w.TLS = s.tls
	return w.Run(ctx, e.Folders.Bench, s.addr, cores, d)
}

// measure warms up the server with w, and then runs w for d. It also returns the CPU time that the server has used
// during d.
func (e *Env) measure(ctx context.Context, w load.Wrk, s *server, cores []int, d time.Duration) (got load.WrkResult, cpu time.Duration, err error) {
	if err := e.warm(ctx, w, s, cores); err != nil {
		return got, 0, err
	}
	cpu, err = s.spent(func() error {
		got, err = e.wrk(ctx, w, s, cores, d)
		return err
	})
	return got, cpu, err
}

// spent returns the CPU time that the server uses while do runs.
func (s *server) spent(do func() error) (cpu time.Duration, err error) {
	before, err := s.CPU()
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := s.CPU()
	return after - before, err
}

// grown returns the number of bytes by which the server's resident memory grows while do runs.
func (s *server) grown(do func() error) (bytes int64, err error) {
	before, err := s.RSS()
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := s.RSS()
	return after - before, err
}

// warm runs w for a short time. Because wrk accepts only whole seconds, this program ends wrk.
func (e *Env) warm(ctx context.Context, w load.Wrk, s *server, cores []int) error {
	w.TLS = s.tls
	process, err := proc.Start(ctx, w.Command(e.Folders.Bench, s.addr, cores, time.Minute))
	if err != nil {
		return err
	}
	defer process.Stop()
	return pause(ctx, warmUp)
}

// later calls do after d, as a part of a round that runs at the same time as the next rounds.
func (e *Env) later(ctx context.Context, d time.Duration, do func() error) {
	e.settling.Go(func() error {
		err := pause(ctx, d)
		return errors.Join(err, do())
	})
}

// Settle returns when all calls that later has scheduled have ended.
func (e *Env) Settle(ctx context.Context) error {
	err := e.settling.Wait()
	e.settling = errgroup.Group{}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// holdArgs returns the arguments with which this program holds connections open.
func holdArgs(h load.Hold) []string {
	args := []string{
		"load", "hold", "-addr", h.Addr, "-path", h.Path,
		"-connections", strconv.Itoa(h.Connections), "-unread", strconv.Itoa(h.Unread),
	}
	switch {
	case h.Hello:
		args = append(args, "-hello")
	case h.TLS:
		args = append(args, "-tls")
	}
	return args
}

// A holder is a process of this program that holds connections open.
type holder struct {
	*proc.Process
	lines *bufio.Reader
	out   *io.PipeReader
}

// hold starts a holder, and returns when all its connections are open.
func (e *Env) hold(ctx context.Context, h load.Hold) (*holder, error) {
	return e.holdWith(ctx, holdArgs(h))
}

func (e *Env) holdWith(ctx context.Context, args []string) (*holder, error) {
	out, in := io.Pipe()
	process, err := proc.Start(ctx, proc.Command{Path: e.Self, Args: args, Cores: e.Cores.Load, Out: in})
	if err != nil {
		return nil, err
	}
	go func() {
		process.Wait()
		in.Close()
	}()
	held := &holder{process, bufio.NewReader(out), out}
	if _, err := held.lines.ReadString('\n'); err != nil {
		held.Stop()
		return nil, fmt.Errorf("hold connections: %w%s", err, quote(process.Output()))
	}
	return held, nil
}

// cutOff returns the number of connections that the server has closed.
func (h *holder) cutOff() (int, error) {
	line, err := h.ask("count")
	if err != nil {
		return 0, fmt.Errorf("count connections: %w", err)
	}
	return strconv.Atoi(line)
}

// ask sends a line to the process and returns the line with which the process answers.
func (h *holder) ask(line string) (string, error) {
	if _, err := io.WriteString(h.Stdin, line+"\n"); err != nil {
		return "", err
	}
	answer, err := h.lines.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%w%s", err, quote(h.Output()))
	}
	return strings.TrimSpace(answer), nil
}

func (h *holder) Stop() {
	h.Stdin.Close() // otherwise the process would wait for another line
	h.out.Close()
	h.Process.Stop()
}

// openLoopArgs returns the arguments with which this program generates an open loop.
func openLoopArgs(o load.OpenLoop) []string {
	return []string{
		"load", "open", "-addr", o.Addr, "-path", o.Path,
		"-rate", strconv.FormatFloat(o.Rate, 'f', 0, 64), "-duration", o.Duration.String(),
		"-connections", strconv.Itoa(o.Connections), "-patience", o.Patience.String(), "-lead-in", o.LeadIn.String(),
	}
}

func (e *Env) openLoop(ctx context.Context, o load.OpenLoop) (load.OpenLoopResult, error) {
	out, err := proc.Run(ctx, proc.Command{Path: e.Self, Args: openLoopArgs(o), Cores: e.Cores.Load})
	if err != nil {
		return load.OpenLoopResult{}, err
	}
	var result load.OpenLoopResult
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		return load.OpenLoopResult{}, fmt.Errorf("open loop: %w in %q", err, out)
	}
	return result, nil
}
