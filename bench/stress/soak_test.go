//go:build linux

package stress_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
	"github.com/dunlinhttp/dunlin/bench/internal/proc"
)

var soakTime = flag.Duration("soak", 10*time.Minute, "how long TestSoak takes when it is asked for by -run Soak")

// soakAsked reports whether a long soak was requested, which also checks latencies. Among other tests a soak takes half a
// minute, with -short a minute, and does not check times.
func soakAsked() bool {
	return (*full || strings.Contains(flag.Lookup("test.run").Value.String(), "Soak")) && os.Getenv("CI") == ""
}

// soakFor returns the duration of all cases, within the remaining time of go test.
func soakFor(t *testing.T) time.Duration {
	d := *soakTime
	switch {
	case !soakAsked():
		d = 30 * time.Second
	case testing.Short():
		d = time.Minute
	}
	if deadline, some := t.Deadline(); some {
		d = min(d, time.Until(deadline)-4*soakEnd)
	}
	return d
}

// minSoak is the minimum duration of a soak, in which two handovers are possible.
const minSoak = 15 * time.Second

// soakEnd is about the time that a soak needs to begin and to end, in addition to its duration.
const soakEnd = 15 * time.Second

// A soakCase is a service and the number of its clients.
type soakCase struct {
	name   string
	share  float64 // share of the total time
	race   bool
	size   float64 // scale of the load; 1 is the promised load
	limit  int64   // memory limit of the service; 0: not checked
	args   []string
	judged bool // the latencies are checked
	drain  time.Duration
}

// All kinds of clients at once, for a long time: quick ones, slow ones, and disconnecting ones, over HTTP/1.1 and HTTP/2, while
// a successor replaces the service. No accepted request is lost, the memory stays within its limit, no resources remain in
// use, and the ordinary clients are hardly affected.
func TestSoak(t *testing.T) {
	all := soakFor(t)
	asked := soakAsked() && !testing.Short()
	for _, c := range []soakCase{
		{name: "32MiB", share: 0.45, size: 1, limit: 32 << 20, args: []string{"-memory", "32MiB"}, judged: asked},
		{name: "default", share: 0.45, size: 1, judged: asked},
		{name: "race", share: 0.1, size: 0.2, race: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.limit > 0 && !soakAsked() {
				t.Skip("within a limit it is to be asked for: -run Soak")
			}
			soak(t, c, max(time.Duration(float64(all)*c.share), minSoak))
		})
	}
}

// handovers is the number of restarts of the service in a soak.
const handovers = 2

func soak(t *testing.T, c soakCase, d time.Duration) {
	if c.race {
		need(t, "gcc", "gcc")
	}
	c.drain = min(10*time.Second, max(d/20, 4*time.Second)) // long enough for the running requests
	s := startSoak(t, c)
	before := s.left()
	ordinary := s.callers()
	quietTime := max(d/10, 2*time.Second)
	first := s.measure(quietTime)()
	measured := s.measure(d - 2*quietTime)
	clients := s.load(c.size)
	for range handovers {
		time.Sleep((d-2*quietTime)/(handovers+1) - c.drain)
		s.handover()
	}
	beside := measured()
	clients.end()
	last := s.measure(quietTime)()
	ordinary.ending.Store(true)
	ordinary.wantAllAnswered()
	clients.wantNothingLost()

	for _, phase := range []struct {
		name string
		load.OpenLoopResult
	}{{"before", first}, {"beside", beside}, {"after", last}} {
		t.Logf("%s: %d requests, p50 %v, p99 %v, p99.9 %v, generator's lag %v; %d without a good answer (bar: 0)",
			phase.name, phase.Due, phase.All.P50, phase.All.P99, phase.All.P999, phase.Lag, phase.Failed())
		if phase.Failed() > 0 {
			t.Errorf("%s: got %d refused, %d answered otherwise, %d not at all", phase.name, phase.Rejected.Count, phase.Other, phase.Unanswered)
		}
	}
	bar := max(2*max(first.All.P99, last.All.P99), 5*time.Millisecond)
	t.Logf("ordinary clients' p99 beside the load: %v (bar: %v)", beside.All.P99, bar)
	if c.judged && beside.All.P99 > bar {
		t.Errorf("ordinary clients' p99 beside the load: got %v, more than %v", beside.All.P99, bar)
	}
	s.wantNothingLeft(before)
	s.stop()
	t.Logf("peak of resident memory: %.1f MB", float64(s.peak.Load())/mb)
	if c.limit > 0 {
		atMost(t, "peak of resident memory", s.peak.Load(), c.limit)
	}
}

// A soakService is the service under test in a soak.
type soakService struct {
	*service
	t             *testing.T
	cores         soakCores
	addr, tlsAddr string
	pid           int
	peak          atomic.Int64 // maximum memory of any of its processes
	watching      sync.WaitGroup
	doneWatching  chan struct{}
}

func startSoak(t *testing.T, c soakCase) *soakService {
	t.Helper()
	var flags []string
	if c.race {
		flags = []string{"-race"}
	}
	program, _ := build(t, servicePackage, flags...), build(t, comparePackage) // uses all cores
	cert, key := certificate(t)
	s := &soakService{t: t, addr: unusedAddr(t), tlsAddr: unusedAddr(t), doneWatching: make(chan struct{})}
	if c.judged {
		s.cores = moveToLoadCore(t)
	}
	if !soakAsked() { // other tests use the processors: delayed requests must not be refused
		c.args = append(c.args, "-queue-target", "-1ms")
	}
	args := append([]string{"-addr", s.addr, "-tls-addr", s.tlsAddr, "-tls-cert", cert, "-tls-key", key, "-drain", c.drain.String()}, c.args...)
	s.service = startProgram(t, program, nil, nil, args...)
	if err := s.cores.serve(s.first.Process.Pid); err != nil {
		t.Fatal(err)
	}
	s.pid = s.both()
	s.watch(s.pid)
	return s
}

// unusedAddr returns an address without a listener.
func unusedAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().String()
}

// both waits for a process that serves both addresses.
func (s *soakService) both() (pid int) {
	s.t.Helper()
	pid, _ = s.serving()
	if again, _ := s.serving(); again != pid {
		s.t.Fatalf("process %d serves one address, process %d the other", pid, again)
	}
	return pid
}

// watch records the maximum memory of a process, until it ends.
func (s *soakService) watch(pid int) {
	status := fmt.Sprintf("/proc/%d/status", pid)
	s.watching.Go(func() {
		for every := time.NewTicker(100 * time.Millisecond); ; {
			text, err := os.ReadFile(status)
			_, rest, found := strings.Cut(string(text), "VmHWM:")
			if err != nil || !found {
				return
			}
			var kb int64
			if _, err := fmt.Sscan(rest, &kb); err == nil && kb<<10 > s.peak.Load() {
				s.peak.Store(kb << 10)
			}
			select {
			case <-every.C:
			case <-s.doneWatching:
				return
			}
		}
	})
}

// handover replaces the service by a successor, while the clients continue.
func (s *soakService) handover() {
	s.t.Helper()
	old := s.pid
	s.signal(old, syscall.SIGHUP)
	s.pid = s.both()
	s.watch(s.pid)
	// Clients that are slow on purpose are disconnected at the end of the drain, so the exit code is 1.
	if code := s.exitCode(old); code != 0 && code != 1 {
		s.t.Errorf("exit code %d of the process before", code)
	}
}

// stop stops the service, which has no clients any more.
func (s *soakService) stop() {
	s.t.Helper()
	s.signal(s.pid, syscall.SIGTERM)
	if code := s.exitCode(s.pid); code != 0 {
		s.t.Errorf("exit code %d at the end (66: the race detector has found something)", code)
	}
	close(s.doneWatching)
	s.watching.Wait()
}

// measure starts ordinary clients in a separate process with a higher priority, and returns a function that waits for their
// latencies.
func (s *soakService) measure(d time.Duration) (wait func() load.OpenLoopResult) {
	s.t.Helper()
	rate, gives := 200, 5*time.Second
	if !soakAsked() { // latencies are not checked, and other tests use the processors
		rate, gives = 50, patience
	}
	p, err := proc.Start(context.Background(), proc.Command{Path: build(s.t, comparePackage), Args: []string{
		"load", "open", "-addr", s.addr, "-path", "/pid", "-rate", strconv.Itoa(rate), "-duration", d.String(), "-connections", "16", "-patience", gives.String(),
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(p.Stop)
	goFirst(p.Pid)
	return func() (got load.OpenLoopResult) {
		s.t.Helper()
		if err := p.Wait(); err != nil {
			s.t.Fatalf("measure: %v: got %s", err, p.Output())
		}
		if err := json.Unmarshal([]byte(p.Output()), &got); err != nil {
			s.t.Fatalf("measure: %v", err)
		}
		return got
	}
}

const comparePackage = "github.com/dunlinhttp/dunlin/bench/cmd/compare"

// The resources of an idle process.
type leftovers struct {
	goroutines  int
	stacks      string
	descriptors int
}

// waitingWorker matches the stack of an idle worker, which is not a leftover.
var waitingWorker = regexp.MustCompile(`engine\.\(\*workers\)\.next`)

// left returns the resources of the process that serves.
func (s *soakService) left() (l leftovers) {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	resp, err := ask(conn, "/goroutines")
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("its goroutines: got %v (%v)", resp, err)
	}
	list, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	for stack := range bytes.SplitSeq(list, []byte("\n\n")) {
		var n int
		if _, err := fmt.Sscanf(string(bytes.TrimSpace(stack)), "%d @", &n); err != nil {
			// The first stack is below a heading.
			_, rest, _ := bytes.Cut(stack, []byte("\n"))
			if _, err := fmt.Sscanf(string(rest), "%d @", &n); err != nil {
				continue
			}
		}
		if !waitingWorker.Match(stack) {
			l.goroutines += n
			l.stacks += string(stack) + "\n\n"
		}
	}
	files, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(s.pid), "fd"))
	if err != nil {
		s.t.Fatal(err)
	}
	l.descriptors = len(files)
	return l
}

// A successor has a few more descriptors than the first process: the inherited ones. Some goroutines of the Go runtime and of
// the service start when they are first needed.
const (
	moreGoroutines  = 4
	moreDescriptors = 8
)

// wantNothingLeft waits until a process without clients has no more resources than an unused process.
func (s *soakService) wantNothingLeft(before leftovers) {
	s.t.Helper()
	var l leftovers
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		l = s.left()
		if l.goroutines <= before.goroutines+moreGoroutines && l.descriptors <= before.descriptors+moreDescriptors {
			break
		}
		if time.Now().After(end) {
			s.t.Errorf("%d goroutines are left of %d, %d descriptors of %d:\n%s",
				l.goroutines, before.goroutines, l.descriptors, before.descriptors, l.stacks)
			break
		}
	}
	s.t.Logf("goroutines before and after: %d and %d (bar: %d more), descriptors: %d and %d (bar: %d more)",
		before.goroutines, l.goroutines, moreGoroutines, before.descriptors, l.descriptors, moreDescriptors)
}
