package redis_test

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// require skips a test if its tool is missing, or fails it if all tests are required.
func require(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err == nil {
			continue
		}
		if os.Getenv("DUNLIN_REQUIRE_ALL") != "" {
			t.Fatalf("%s is not installed, and DUNLIN_REQUIRE_ALL is set", tool)
		}
		t.Skipf("%s is not installed (Debian: redis-server, redis-tools): what Redis does is not tested", tool)
	}
}

// program returns the server that the tests start: redis-server, or the value of DUNLIN_REDIS_SERVER, such as valkey-server.
func program() string { return cmp.Or(os.Getenv("DUNLIN_REDIS_SERVER"), "redis-server") }

// A server is a Redis of a test.
type server struct {
	addr    string
	port    int
	args    []string
	bus     string // the port of the cluster bus
	process *exec.Cmd
	ended   chan struct{}
	said    *safeBuffer
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// freePort returns a port that was free a moment ago.
func freePort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

// startServer starts a Redis that stores nothing on disk, with further settings.
func startServer(t *testing.T, settings ...string) *server {
	t.Helper()
	require(t, program())
	for range 5 { // another program may use the port first
		port := freePort(t)
		s := &server{port: port, addr: fmt.Sprintf("127.0.0.1:%d", port)}
		s.args = append([]string{
			"--port", fmt.Sprint(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir(), "--daemonize", "no",
		}, settings...)
		if slices.Contains(settings, "--cluster-enabled") {
			s.bus = fmt.Sprint(freePort(t))
			s.args = append(s.args, "--cluster-port", s.bus)
		}
		if s.start(t) {
			t.Cleanup(s.kill)
			return s
		}
	}
	t.Fatal("no redis-server would start")
	return nil
}

// start starts the process, and reports whether it answers.
func (s *server) start(t *testing.T) bool {
	t.Helper()
	s.said = new(safeBuffer)
	s.process = exec.Command(program(), s.args...)
	s.process.Stdout, s.process.Stderr = s.said, s.said
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	s.ended = make(chan struct{})
	go func(p *exec.Cmd, ended chan struct{}) { _ = p.Wait(); close(ended) }(s.process, s.ended)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 3000 {
		if answer, err := s.ask("PING"); err == nil && (answer == "+PONG" || strings.HasPrefix(answer, "-NOAUTH")) {
			return true
		}
		select {
		case <-tick.C:
		case <-s.ended:
			t.Logf("redis-server ended: %s", s.said)
			return false
		}
	}
	t.Fatalf("redis-server does not answer: %s", s.said)
	return false
}

func (s *server) kill() {
	_ = s.process.Process.Kill()
	<-s.ended
}

// ask sends a command of plain words and returns the first line of the reply.
func (s *server) ask(words ...string) (string, error) {
	conn, err := net.DialTimeout("tcp", s.addr, 10*time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, strings.Join(words, " ")+"\r\n"); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line), err
}

// must is like ask, for commands that cannot fail.
func (s *server) must(t *testing.T, words ...string) string {
	t.Helper()
	answer, err := s.ask(words...)
	if err != nil || strings.HasPrefix(answer, "-") {
		t.Fatalf("%s: got %s, %v", strings.Join(words, " "), answer, err)
	}
	return answer
}

// eventually waits half a minute at most for a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline, tick := time.After(30*time.Second), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: not within half a minute", what)
		}
	}
}

// startCluster starts a cluster of three masters, with further settings.
func startCluster(t *testing.T, settings ...string) []*server {
	t.Helper()
	const slots, nodes = 16384, 3
	var cluster []*server
	for i := range nodes {
		s := startServer(t, append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "5000"}, settings...)...)
		s.must(t, "CLUSTER", "ADDSLOTSRANGE", fmt.Sprint(i*slots/nodes), fmt.Sprint((i+1)*slots/nodes-1))
		s.must(t, "CLUSTER", "SET-CONFIG-EPOCH", fmt.Sprint(i+1))
		cluster = append(cluster, s)
	}
	for _, s := range cluster[1:] {
		cluster[0].must(t, "CLUSTER", "MEET", "127.0.0.1", fmt.Sprint(s.port), s.bus)
	}
	for _, s := range cluster {
		eventually(t, "the cluster is made", func() bool { return clusterIsUp(s, nodes) })
	}
	return cluster
}

// clusterIsUp reports whether a node knows all others and the cluster serves.
func clusterIsUp(s *server, nodes int) bool {
	return clusterKnows(s, nodes) && strings.Contains(clusterInfo(s), fmt.Sprintf("cluster_size:%d\r", nodes))
}

// clusterKnows reports whether a node knows this number of nodes, including itself, and serves.
func clusterKnows(s *server, nodes int) bool {
	info := clusterInfo(s)
	return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r", nodes))
}

func clusterInfo(s *server) string {
	conn, err := net.DialTimeout("tcp", s.addr, 10*time.Second)
	if err != nil {
		return ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(conn, "CLUSTER INFO\r\nQUIT\r\n")
	info, _ := io.ReadAll(conn)
	return string(info)
}
