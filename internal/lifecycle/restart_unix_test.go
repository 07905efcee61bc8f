//go:build unix

package lifecycle_test

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/lifecycle"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// The tests of restarts run a service in a process of its own, which runs this test program. It and its successors report to
// one pipe, in lines that start with a word:
//
//	serving <pid> <address> <engine>
//	log     <pid> <message>
//	ended   <pid> <error>

const serviceVariable = "DUNLIN_TEST_SERVICE"

// TestService is the service if the variable is set; otherwise it does nothing.
func TestService(t *testing.T) {
	if os.Getenv(serviceVariable) == "" {
		return
	}
	pid := os.Getpid()
	tell := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	if _, err := os.Stat(os.Getenv("TEST_FAIL")); err == nil {
		os.Exit(3)
	}
	if d, err := time.ParseDuration(os.Getenv("TEST_UNCLAIMED")); err == nil {
		*lifecycle.UnclaimedFor = d
	}
	config := dunlin.Config{
		Addr:    cmp.Or(os.Getenv("TEST_ADDR"), "127.0.0.1:0"),
		H2C:     dunlin.H2CPriorKnowledge,
		Process: dunlin.ProcessConfig{DrainTimeout: suite.Patience},
		TLS: dunlin.TLSConfig{
			Cert: os.Getenv("TEST_CERT"),
			Key:  os.Getenv("TEST_KEY"),
		},
		Logger: slog.New(lineHandler{slog.DiscardHandler, tell}),
		Ready:  func(addr net.Addr, e dunlin.Engine) { tell("serving %d %s %s", pid, addr, e) },
	}
	if config.TLS.Cert != "" {
		config.TLS.Addr = "127.0.0.1:0"
	}
	if os.Getenv("TEST_IMPATIENT") != "" {
		config.Process.DrainTimeout = time.Nanosecond
	}
	if err := config.Engine.UnmarshalText([]byte(os.Getenv("TEST_ENGINE"))); err != nil {
		t.Fatal(err)
	}
	var inner *dunlin.Group
	if addr := os.Getenv("TEST_INNER"); addr != "" {
		ready := config.Ready
		config.Ready = func(addr net.Addr, e dunlin.Engine) {
			tell("inner %d %v", pid, inner.App().Addrs()[0])
			ready(addr, e)
		}
	}
	app := dunlin.New(config)
	app.Get("/pid", suite.Text(strconv.Itoa(pid)))
	if addr := os.Getenv("TEST_INNER"); addr != "" {
		inner = app.Inner(addr)
		inner.Get("/inner", suite.Text(strconv.Itoa(pid)))
	}
	app.Get("/ready", app.Readiness())
	app.Get("/block", func(r *dunlin.Request) dunlin.Response {
		tell("log %d blocked", pid)
		<-r.Context().Done()
		return dunlin.NoContent()
	})
	app.Get("/variables", func(*dunlin.Request) dunlin.Response {
		return dunlin.Text(os.Getenv("LISTEN_FDS") + os.Getenv("LISTEN_PID") + os.Getenv("DUNLIN_RESTART"))
	})
	shutdown := besides(t, config)
	err := app.Run(context.Background())
	shutdown()
	tell("ended %d %v", pid, err)
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// besides serves other apps of the process, which answer "other" instead of the process ID: one whose Run ends before the
// service begins, and one with ListenAndServe, unless another program uses its address. The returned function shuts down the
// latter.
func besides(t *testing.T, config dunlin.Config) (shutdown func()) {
	config.Engine, config.TLS.Cert, config.TLS.Key, config.TLS.Addr = dunlin.EngineAuto, "", "", ""
	if addr := os.Getenv("TEST_RUN_BEFORE"); addr != "" {
		ctx, cancel := context.WithCancel(context.Background())
		config.Addr, config.Ready = addr, func(net.Addr, dunlin.Engine) { cancel() }
		if err := other(config).Run(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if addr := os.Getenv("TEST_LISTEN"); addr != "" {
		if _, err := os.Stat(os.Getenv("TEST_NO_LISTEN")); err == nil {
			return func() {}
		}
		config.Ready = func(net.Addr, dunlin.Engine) { fmt.Printf("beside %d\n", os.Getpid()) }
		app, ended := other(config), make(chan struct{})
		go func() {
			defer close(ended)
			if err := app.ListenAndServe(addr); err != nil {
				fmt.Println("beside", err)
			}
		}()
		return func() {
			_ = app.Shutdown(context.Background())
			<-ended
		}
	}
	return func() {}
}

func other(config dunlin.Config) *dunlin.App {
	app := dunlin.New(config)
	app.Get("/pid", suite.Text("other"))
	return app
}

// lineHandler writes the messages of a log as lines.
type lineHandler struct {
	slog.Handler
	tell func(string, ...any)
}

func (lineHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h lineHandler) Handle(_ context.Context, r slog.Record) error {
	h.tell("log %d %s", os.Getpid(), r.Message)
	return nil
}

// A service is the test's view of the process and its successors.
type service struct {
	t     *testing.T
	lines chan string // closed when the last process has ended
	seen  []string
}

// startService runs the service with additional environment. The files become its descriptors 3 and so on; a shell sets
// LISTEN_PID.
func startService(t *testing.T, env []string, files ...*os.File) *service {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startProgram(t, exe, env, files...)
}

func startProgram(t *testing.T, exe string, env []string, files ...*os.File) *service {
	t.Helper()
	args := []string{exe, "-test.run=^TestService$"}
	if len(files) > 0 {
		args = append([]string{"/bin/sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`}, args...)
	}
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), serviceVariable+"=1")
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = in, os.Stderr, files
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // one process group, so that all successors can be killed
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	s := &service{t: t, lines: make(chan string, 10_000)}
	go func() {
		defer close(s.lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			s.lines <- scan.Text()
		}
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // processes left by a failed test
		_ = cmd.Wait()
		for range s.lines { // until the last process ends
		}
		_ = out.Close()
		if t.Failed() {
			t.Logf("output of the service:\n%s", strings.Join(s.seen, "\n"))
		}
	})
	return s
}

// await returns the text after the prefix in the next line that starts with one of the prefixes.
func (s *service) await(prefixes ...string) (rest string) {
	s.t.Helper()
	limit := time.After(suite.Patience)
	for {
		select {
		case line, open := <-s.lines:
			if !open {
				s.t.Fatalf("the service ended without printing %q", prefixes)
			}
			s.seen = append(s.seen, line)
			for _, prefix := range prefixes {
				if rest, ok := strings.CutPrefix(line+" ", prefix+" "); ok {
					return rest
				}
			}
		case <-limit:
			s.t.Fatalf("the service did not print %q", prefixes)
		}
	}
}

// serving waits for the next process that serves a listener.
func (s *service) serving() (pid int, addr string) {
	s.t.Helper()
	if _, err := fmt.Sscan(s.await("serving"), &pid, &addr); err != nil {
		s.t.Fatal(err)
	}
	return pid, addr
}

// signal sends sig to one process of the service.
func (s *service) signal(pid int, sig syscall.Signal) {
	s.t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		s.t.Fatal(err)
	}
}

// end reads until all processes have ended and returns the error of each.
func (s *service) end() map[string]string {
	s.t.Helper()
	limit := time.After(suite.Patience)
	for {
		select {
		case line, open := <-s.lines:
			if !open {
				ends := map[string]string{}
				for _, line := range s.seen {
					if rest, ok := strings.CutPrefix(line, "ended "); ok {
						pid, err, _ := strings.Cut(rest, " ")
						ends[pid] = err
					}
				}
				return ends
			}
			s.seen = append(s.seen, line)
		case <-limit:
			s.t.Fatal("the service did not end")
		}
	}
}

// load is a constant stream of requests.
type load struct {
	t       *testing.T
	wg      sync.WaitGroup
	ending  atomic.Bool // connections may be refused
	answers atomic.Int64
	again   atomic.Int64 // requests sent a second time
}

// run sends requests one after another, until the service refuses.
func (l *load) run(c *http.Client, url string) {
	l.wg.Go(func() {
		for {
			err := fetchPID(c, url)
			ending := l.ending.Load()
			if err != nil && !ending && unanswered(err) {
				// A client may repeat a GET on a connection that closed without a byte of a response (RFC 9110, section 9.2.2).
				// Go's client does so itself unless the connection was new.
				l.again.Add(1)
				l.t.Logf("request was retried: %v", err)
				continue
			}
			if err == nil {
				l.answers.Add(1)
				continue
			}
			if !ending {
				l.t.Errorf("a request failed: %v", err)
				return
			}
			if !errors.Is(err, syscall.ECONNREFUSED) && !unanswered(err) {
				l.t.Errorf("after the end: %v", err)
			}
			return
		}
	})
}

// unanswered reports whether a connection was closed without a byte of a response.
func unanswered(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		strings.Contains(err.Error(), "server closed idle connection")
}

// fetchPID gets url, which responds with the ID of its process. An incomplete response has its own error.
func fetchPID(c *http.Client, url string) error {
	_, err := servedBy(c, url)
	return err
}

func servedBy(c *http.Client, url string) (pid int, err error) {
	resp, err := c.Get(url)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, fmt.Errorf("incomplete answer: %v", err)
	}
	if pid, err = strconv.Atoi(string(body)); err != nil || resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("status %d, body %q", resp.StatusCode, body)
	}
	return pid, nil
}

// clientNew returns a client that makes a connection for each request.
func clientNew(t *testing.T, trusted *x509.CertPool) *http.Client {
	c := suite.Client(t, trusted, suite.HTTP1)
	c.Transport.(*http.Transport).DisableKeepAlives = true
	return c
}

func TestRestartLosesNothing(t *testing.T) {
	const restarts = 20
	suite.OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		certFile, keyFile, trusted := suite.NewCert(t)
		s := startService(t, []string{"TEST_ENGINE=" + engine.String(), "TEST_CERT=" + certFile, "TEST_KEY=" + keyFile})
		pid, clear := s.serving()
		_, secure := s.serving()
		l := &load{t: t}
		for range 4 {
			l.run(suite.Client(t, nil, suite.HTTP1), "http://"+clear+"/pid")
		}
		l.run(clientNew(t, nil), "http://"+clear+"/pid")
		byTLS, inClear := suite.Client(t, trusted, suite.HTTP2), suite.Client(t, nil, suite.H2C)
		l.run(byTLS, "https://"+secure+"/pid")
		l.run(inClear, "http://"+clear+"/pid")
		if engine == dunlin.EngineLoop { // net/http's server may close a connection while a stream begins
			for range 2 { // two streams on one connection
				l.run(byTLS, "https://"+secure+"/pid")
				l.run(inClear, "http://"+clear+"/pid")
			}
		}
		l.run(clientNew(t, trusted), "https://"+secure+"/pid")
		fresh := clientNew(t, nil)
		for range restarts {
			s.signal(pid, syscall.SIGHUP)
			next, addr := s.serving()
			if _, again := s.serving(); addr != clear || again != secure || next == pid {
				t.Fatalf("process %d serves %s and %s after process %d served %s and %s", next, addr, again, pid, clear, secure)
			}
			pid = next
			// The processes share the listener until the old one closes it.
			for seen := 0; seen != pid; {
				var err error
				if seen, err = servedBy(fresh, "http://"+clear+"/pid"); err != nil && !unanswered(err) {
					t.Fatal(err)
				}
			}
		}
		l.ending.Store(true)
		s.signal(pid, syscall.SIGTERM)
		l.wg.Wait()
		ends := s.end()
		for pid, err := range ends {
			if err != "<nil>" {
				t.Errorf("process %s ended with %s", pid, err)
			}
		}
		if len(ends) != restarts+1 {
			t.Errorf("got %d processes that ended, want %d", len(ends), restarts+1)
		}
		if again := l.again.Load(); again > 0 {
			t.Errorf("got %d retried requests", again)
		}
		if l.answers.Load() < restarts {
			t.Errorf("got only %d answered requests", l.answers.Load())
		}
		t.Logf("%d requests answered, %d of them sent twice", l.answers.Load(), l.again.Load())
	})
}

// If the new process fails to serve, the old one continues unchanged.
func TestRestartFails(t *testing.T) {
	fail := filepath.Join(t.TempDir(), "fail")
	s := startService(t, []string{"TEST_ENGINE=auto", "TEST_FAIL=" + fail})
	first, addr := s.serving()
	if err := os.WriteFile(fail, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.signal(first, syscall.SIGHUP)
	s.await(fmt.Sprintf("log %d the new process failed:", first))
	c := suite.Client(t, nil, suite.HTTP1)
	if _, body := suite.Get(t, c, "http://"+addr+"/pid"); body != strconv.Itoa(first) {
		t.Errorf("got process %s, want %d", body, first)
	}
	if resp, _ := suite.Get(t, c, "http://"+addr+"/ready"); resp.StatusCode != http.StatusOK {
		t.Errorf("after a failed restart: got readiness %d", resp.StatusCode)
	}
	if err := os.Remove(fail); err != nil {
		t.Fatal(err)
	}
	s.signal(first, syscall.SIGHUP)
	second, again := s.serving()
	if addr != again {
		t.Errorf("new process: got address %s, want %s", again, addr)
	}
	s.signal(second, syscall.SIGTERM)
	if ends := s.end(); len(ends) != 2 {
		t.Errorf("the ends were %v, want two", ends)
	}
}

// A restart runs the file at the path that the program was started from, even if the old file was moved.
func TestRestartRunsTheNewFile(t *testing.T) {
	this, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	put := func(path string) {
		t.Helper()
		data, err := os.ReadFile(this)
		if err == nil {
			err = os.WriteFile(path, data, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct{ before, after func(dir, program string) }{
		"old file moved": {
			func(_, program string) { put(program) },
			func(_, program string) { must(os.Rename(program, program+".old")); put(program) },
		},
		"new file by a rename": {
			func(_, program string) { put(program) },
			func(dir, program string) { put(dir + "/new"); must(os.Rename(dir+"/new", program)) },
		},
		"a link that leads elsewhere": {
			func(dir, program string) { put(dir + "/v1"); must(os.Symlink("v1", program)) },
			func(dir, program string) { put(dir + "/v2"); must(os.Remove(program)); must(os.Symlink("v2", program)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			program := filepath.Join(dir, "service")
			c.before(dir, program)
			s := startProgram(t, program, []string{"TEST_ENGINE=auto"})
			first, _ := s.serving()
			c.after(dir, program)
			s.signal(first, syscall.SIGHUP)
			second, _ := s.serving()
			running, err := os.Stat(fmt.Sprintf("/proc/%d/exe", second))
			if errors.Is(err, os.ErrNotExist) {
				t.Skip("needs /proc to find the running file")
			}
			must(err)
			wanted, err := os.Stat(program)
			must(err)
			if !os.SameFile(running, wanted) {
				t.Error("the new process runs the old file")
			}
			s.signal(second, syscall.SIGTERM)
			if ends := s.end(); len(ends) != 2 {
				t.Errorf("the ends were %v, want two", ends)
			}
		})
	}
}

func TestRunReportsUnfinishedRequests(t *testing.T) {
	suite.OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		s := startService(t, []string{"TEST_ENGINE=" + engine.String(), "TEST_IMPATIENT=1"})
		pid, addr := s.serving()
		conn := suite.Dial(t, addr)
		if _, err := io.WriteString(conn, suite.Request("GET /block")); err != nil {
			t.Fatal(err)
		}
		s.await(fmt.Sprintf("log %d blocked", pid))
		s.signal(pid, syscall.SIGTERM)
		suite.WantContains(t, "the error", s.end()[strconv.Itoa(pid)], "not finished after")
	})
}

// Listeners from systemd replace the addresses, by name.
func TestSocketActivation(t *testing.T) {
	suite.OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		certFile, keyFile, trusted := suite.NewCert(t)
		secure, clear := suite.Listen(t), suite.Listen(t)
		files := []*os.File{file(t, secure), file(t, clear)}
		s := startService(t, []string{
			"TEST_ENGINE=" + engine.String(), "TEST_CERT=" + certFile, "TEST_KEY=" + keyFile,
			"LISTEN_FDS=2", "LISTEN_FDNAMES=https:users.socket", "TEST_ADDR=" + clear.Addr().String(),
		}, files...)
		pid, _ := s.serving()
		s.serving()
		c := suite.Client(t, trusted, suite.HTTP1)
		for _, url := range []string{"http://" + clear.Addr().String(), "https://" + secure.Addr().String()} {
			if _, body := suite.Get(t, c, url+"/pid"); body != strconv.Itoa(pid) {
				t.Errorf("%s is served by %q, want %d", url, body, pid)
			}
		}
		if _, body := suite.Get(t, c, "http://"+clear.Addr().String()+"/variables"); body != "" {
			t.Errorf("the variables are still set: %q", body)
		}
		s.signal(pid, syscall.SIGTERM)
		if end := s.end()[strconv.Itoa(pid)]; end != "<nil>" {
			t.Errorf("Run returned %s", end)
		}
	})
}

// Variables meant for another process are not changed.
func TestSocketActivationOfOtherProcesses(t *testing.T) {
	for _, env := range []string{"LISTEN_PID=1", "DUNLIN_RESTART=1:4"} {
		s := startService(t, []string{"TEST_ENGINE=auto", "LISTEN_FDS=7", env})
		pid, _ := s.serving()
		s.signal(pid, syscall.SIGTERM)
		s.end()
	}
}

func TestSocketActivationErrors(t *testing.T) {
	for _, c := range []struct{ fds, names, want string }{
		{"x", "", "LISTEN_FDS"},
		{"2", "", "descriptor 4"},
		{"1", "https", "no certificate"},
	} {
		ln := suite.Listen(t)
		s := startService(t, []string{"TEST_ENGINE=auto", "LISTEN_FDS=" + c.fds, "LISTEN_FDNAMES=" + c.names}, file(t, ln))
		ends := s.end()
		if len(ends) != 1 {
			t.Errorf("the ends were %v, want one", ends)
		}
		for _, end := range ends {
			suite.WantContains(t, "the error", end, c.want)
		}
	}
}

// file returns the descriptor of a listener and closes the listener: only the service has it open then.
func file(t *testing.T, ln net.Listener) *os.File {
	t.Helper()
	f, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	return f
}

// systemd is notified when the service serves, of its process ID after a restart, and when it ends.
func TestServiceManagerNotifications(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	if err := manager.SetDeadline(time.Now().Add(suite.Patience)); err != nil {
		t.Fatal(err)
	}
	heard := func() string {
		var buf [100]byte
		n, err := manager.Read(buf[:])
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
	s := startService(t, []string{"TEST_ENGINE=auto", "NOTIFY_SOCKET=" + path})
	pid, _ := s.serving()
	if got := heard(); got != "READY=1" {
		t.Fatalf("got notification %q", got)
	}
	s.signal(pid, syscall.SIGHUP)
	next, _ := s.serving()
	for _, want := range []string{"READY=1", fmt.Sprintf("MAINPID=%d", next)} {
		if got := heard(); got != want {
			t.Errorf("got notification %q, want %q", got, want)
		}
	}
	s.await(fmt.Sprintf("ended %d", pid))
	s.signal(next, syscall.SIGTERM)
	if got := heard(); got != "STOPPING=1" {
		t.Errorf("got notification %q", got)
	}
}

// TLS sessions can be resumed in the new process: clients need no full handshake.
func TestSessionsOutliveRestart(t *testing.T) {
	suite.OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		certFile, keyFile, trusted := suite.NewCert(t)
		s := startService(t, []string{"TEST_ENGINE=" + engine.String(), "TEST_CERT=" + certFile, "TEST_KEY=" + keyFile})
		pid, _ := s.serving()
		_, secure := s.serving()
		var clients []*http.Client
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			c := clientNew(t, trusted)
			config := c.Transport.(*http.Transport).TLSClientConfig
			config.MinVersion, config.MaxVersion, config.ClientSessionCache = version, version, tls.NewLRUClientSessionCache(1)
			clients = append(clients, c)
		}
		visit := func(resumed bool) {
			t.Helper()
			for _, c := range clients {
				resp, body := suite.Get(t, c, "https://"+secure+"/pid")
				if body != strconv.Itoa(pid) || resp.TLS.DidResume != resumed {
					t.Errorf("%s: process %s, want %d; resumed %v, want %v", tls.VersionName(resp.TLS.Version), body, pid, resp.TLS.DidResume, resumed)
				}
			}
		}
		visit(false)
		for range 2 {
			s.signal(pid, syscall.SIGHUP)
			next, _ := s.serving()
			s.serving()
			s.await(fmt.Sprintf("ended %d", pid))
			pid = next
			visit(true)
		}
		s.signal(pid, syscall.SIGTERM)
		s.end()
	})
}
