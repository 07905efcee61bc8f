//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/store"
)

// The tests of several machines run on one: replicas of the shop, a Redis Cluster and HAProxy. Each has its own loopback
// address, so ports do not collide.

// TestMain runs a replica of the shop if the environment requests it.
func TestMain(m *testing.M) {
	if os.Getenv("SHOP_REPLICA") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// patience is the time limit of every wait, which a failing test would otherwise never end. It is not part of an assertion.
const patience = 40 * time.Second

// needTool returns the path of a program, and skips the test where it is not installed.
func needTool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil { // servers may be in a folder outside PATH
		path, err = exec.LookPath("/usr/sbin/" + name)
	}
	if err != nil {
		if os.Getenv("DUNLIN_REQUIRE_ALL") != "" {
			t.Fatalf("DUNLIN_REQUIRE_ALL is set: %v", err)
		}
		t.Skipf("%v: install it (Debian: redis-server, haproxy) to see three replicas behind a balancer", err)
	}
	return path
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: did not happen within %v", what, patience)
		}
	}
}

// A process is one process of the fleet.
type process struct {
	name  string
	cmd   *exec.Cmd
	said  said
	ended chan struct{}
}

type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// start starts a process that ends with the test, and logs its output if the test has failed.
func start(t *testing.T, files []*os.File, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{name: filepath.Base(name), cmd: exec.Command(name, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.ExtraFiles, p.cmd.Env = &p.said, &p.said, files, append(os.Environ(), env...)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.cmd.Wait(); close(p.ended) }()
	t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.ended
		if t.Failed() {
			p.said.mu.Lock()
			defer p.said.mu.Unlock()
			text := p.said.b.String()
			t.Logf("%s said: %s", p.name, text[max(0, len(text)-4000):])
		}
	})
	return p
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// stop ends the process by a signal and waits for its end.
func (p *process) stop(t *testing.T, s syscall.Signal) {
	t.Helper()
	p.signal(s)
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatalf("%s did not end", p.name)
	}
}

// A fleet has all processes of the test.
type fleet struct {
	test     *testing.T // the processes end with the test
	net      string     // "127.a.b": those of the fleet have addresses in it,
	port     int        // and one port
	dir      string
	front    string // HAProxy's address
	admin    string // socket for statistics
	replicas [3]*process
	redis    []*process // three masters, and a replica of the first
}

// direct sends requests to replicas, without the balancer.
var direct = http.Client{Timeout: patience}

const (
	orderLimit = 10 // orders of an address in an hour
	staffKey   = "key-of-the-test"
)

func newFleet(t *testing.T) *fleet {
	haproxy, redis := needTool(t, "haproxy"), needTool(t, "redis-server")
	pid := os.Getpid()
	f := &fleet{test: t, net: fmt.Sprintf("127.%d.%d", 1+pid%200, pid/200%250), port: 20_000 + pid%5_000, dir: t.TempDir()}
	f.startRedis(t, redis)
	for i := range f.replicas {
		f.startReplica(t, i)
	}
	f.startHAProxy(t, haproxy)
	return f
}

func (f *fleet) replicaAddr(i int) string { return fmt.Sprintf("%s.%d:%d", f.net, 1+i, f.port) }
func (f *fleet) redisIP(i int) string     { return fmt.Sprintf("%s.%d", f.net, 11+i) }
func (f *fleet) redisAddr(i int) string   { return fmt.Sprintf("%s:%d", f.redisIP(i), f.port) }
func (f *fleet) database() string         { return filepath.Join(f.dir, "shop.db") }

// startReplica starts a replica of the shop, and waits until it is ready.
func (f *fleet) startReplica(t *testing.T, i int) {
	t.Helper()
	f.replicas[i] = start(f.test, nil, []string{"SHOP_REPLICA=1", "DUNLIN_STORE="}, os.Args[0],
		"-addr", f.replicaAddr(i), "-key", staffKey, "-db", f.database(), "-proxies", "127.0.0.1", "-grace", "2s", "-orders", strconv.Itoa(orderLimit), "-queue-target", "-1ms",
		"-store", fmt.Sprintf("redis://%s?addr=%s&addr=%s&timeout=1s", f.redisAddr(0), f.redisAddr(1), f.redisAddr(2)))
	f.replicas[i].name = fmt.Sprintf("replica %d", i)
	eventually(t, f.replicas[i].name+" is ready", func() bool {
		resp, err := direct.Get("http://" + f.replicaAddr(i) + "/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// storeStats returns statistics of the calls of a replica to Redis.
func (f *fleet) storeStats(t *testing.T, i int) store.GuardStats {
	t.Helper()
	req, err := http.NewRequest("GET", "http://"+f.replicaAddr(i)+"/stats", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Staff-Key", staffKey)
	resp, err := direct.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var stats struct{ Store store.GuardStats }
	if err := json.NewDecoder(resp.Body).Decode(&stats); err != nil {
		t.Fatal(err)
	}
	return stats.Store
}

// startHAProxy starts the load balancer. It repeats idempotent requests on another replica if one has not answered.
func (f *fleet) startHAProxy(t *testing.T, program string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	file, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	f.front, f.admin = ln.Addr().String(), filepath.Join(f.dir, "admin")
	text := "global\n stats socket " + f.admin + `
defaults
 mode http
 timeout connect 5s
 timeout client 60s
 timeout server 60s
 timeout check 20s
 retries 6
 option redispatch 1
 option forwardfor
frontend front
 bind fd@3
 default_backend shop
backend shop
 balance roundrobin
 option httpchk GET /ready
 http-check expect status 200
 retry-on conn-failure empty-response
 http-request disable-l7-retry if !METH_GET !{ req.hdr(Idempotency-Key) -m found }
 default-server check inter 100ms fall 1 rise 1
`
	for i := range f.replicas {
		text += fmt.Sprintf(" server replica%d %s\n", i, f.replicaAddr(i))
	}
	config := filepath.Join(f.dir, "haproxy.cfg")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, []*os.File{file}, nil, program, "-db", "-f", config)
	f.awaitUp(t)
}

// awaitUp waits until the balancer has found all replicas ready.
func (f *fleet) awaitUp(t *testing.T) {
	t.Helper()
	eventually(t, "the balancer finds all replicas ready", func() bool {
		text, err := converse("unix", f.admin, "show stat\n")
		return err == nil && strings.Count(text, "\nshop,replica") == len(f.replicas) && strings.Count(text, ",L7OK,") == len(f.replicas)
	})
}

// converse sends a text and returns everything that the other side sends until it closes.
func converse(network, addr, text string) (string, error) {
	conn, err := net.DialTimeout(network, addr, patience)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, text); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// command sends a command of plain words to one Redis.
func (f *fleet) command(i int, words string) string {
	answer, err := converse("tcp", f.redisAddr(i), words+"\r\nQUIT\r\n")
	if err != nil {
		return "-" + err.Error()
	}
	return strings.TrimSuffix(answer, "+OK\r\n")
}

func (f *fleet) must(t *testing.T, i int, words string) string {
	t.Helper()
	answer := f.command(i, words)
	if strings.HasPrefix(answer, "-") {
		t.Fatalf("redis %d: %s: got %s", i, words, answer)
	}
	return answer
}

// startRedis starts a cluster of three masters, the first of which has a replica. Only the tests cause a failover: they pause
// the cluster.
func (f *fleet) startRedis(t *testing.T, program string) {
	t.Helper()
	const slots, masters = 16384, 3
	for i := range masters + 1 {
		ip := f.redisIP(i)
		dir := filepath.Join(f.dir, fmt.Sprint("redis", i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		p := start(t, nil, nil, program, "--bind", ip, "--port", strconv.Itoa(f.port), "--dir", dir, "--save", "", "--appendonly", "no", "--daemonize", "no",
			"--maxmemory-policy", "noeviction", "--cluster-enabled", "yes", "--cluster-announce-ip", ip, "--cluster-node-timeout", "60000",
			"--cluster-replica-no-failover", "yes", "--repl-diskless-sync-delay", "0")
		p.name = fmt.Sprint("redis ", i)
		f.redis = append(f.redis, p)
		eventually(t, p.name+" answers", func() bool { return strings.HasPrefix(f.command(i, "PING"), "+PONG") })
		f.must(t, i, fmt.Sprintf("CLUSTER SET-CONFIG-EPOCH %d", i+1))
		if i < masters {
			f.must(t, i, fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", i*slots/masters, (i+1)*slots/masters-1))
		}
		if i > 0 {
			f.must(t, 0, fmt.Sprintf("CLUSTER MEET %s %d", ip, f.port))
		}
	}
	for i := range f.redis {
		eventually(t, fmt.Sprintf("redis %d knows the others", i), func() bool {
			info := f.command(i, "CLUSTER INFO")
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:4\r") && strings.Contains(info, "cluster_size:3\r")
		})
	}
	_, id, _ := strings.Cut(f.must(t, 0, "CLUSTER MYID"), "\r\n")
	f.must(t, masters, "CLUSTER REPLICATE "+strings.TrimSpace(id))
	eventually(t, "the replica of Redis has what its master has", func() bool {
		return strings.Contains(f.command(masters, "INFO replication"), "master_link_status:up")
	})
}
