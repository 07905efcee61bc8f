// Package sharing finds the writes to memory that the event loops share.
//
// A server is built with coverage counters and serves requests of one kind. The statements that ran about as often as there were
// requests are then searched for operations on memory that other goroutines may see: methods of sync/atomic and locks. Go
// programs without data races share memory in no other way but channels, which are searched for as well.
package sharing

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// requests is the number of requests that are counted. Operations in fewer than one of a hundred requests are not listed.
const requests = 2000

// TestSharedWrites checks that requests write to no memory that loops share. testdata/operations.txt lists the operations of a
// request with the owner of the memory of each, "loop" or "connection". What new connections write is logged.
func TestSharedWrites(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the loop engine runs on Linux")
	}
	known := owners(t)
	s := start(t)
	used := make(map[string]bool)
	for _, kind := range []struct {
		name, path string
		client
	}{
		{"plaintext", "/plaintext", client{}},
		{"JSON", "/json", client{}},
		{"typed", "/items/7", client{}},
		{"TLS", "/plaintext", client{secure: true}},
		{"h2c", "/plaintext", client{two: true}},
		{"h2", "/items/7", client{two: true, secure: true}},
		{"new connections", "/plaintext", client{once: true}},
		{"new TLS connections", "/plaintext", client{secure: true, once: true}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			get := kind.open()
			url := "http://" + s.clear + kind.path
			if kind.secure {
				url = "https://" + s.secure + kind.path
			}
			for range 200 { // pools and tables are filled
				get(t, url)
			}
			measure := func() []operation {
				s.do(t, "clear")
				for range requests {
					get(t, url)
				}
				dir := t.TempDir()
				s.do(t, "write "+dir)
				return operations(t, dir)
			}
			ops := measure()
			// The monitor sleeps when this test pauses for 2 ms, as on a busy machine. Such a run is repeated; the last one counts.
			for tries := 1; tries < 5 && slices.ContainsFunc(ops, monitorSleeps); tries++ {
				ops = measure()
			}
			for _, op := range ops {
				if op.count < requests/100 {
					continue
				}
				if kind.once {
					t.Logf("%s: %.2f a connection", op.name, float64(op.count)/requests)
					continue
				}
				used[op.name] = true
				switch owner := known[op.name]; owner {
				case "loop", "connection":
				case "":
					t.Errorf("%s: got %.2f a request: not listed in testdata/operations.txt", op.name, float64(op.count)/requests)
				default:
					t.Errorf("testdata/operations.txt: %s: unknown owner %q", op.name, owner)
				}
			}
		})
	}
	for name := range known {
		if !used[name] {
			t.Errorf("%s: listed in testdata/operations.txt, but not part of a request", name)
		}
	}
}

// monitorSleeps reports whether op shows that the monitor of the loops slept between requests.
func monitorSleeps(op operation) bool {
	return strings.HasPrefix(op.name, "engine.monitor.") && op.count >= requests/100
}

// owners reads testdata/operations.txt: lines of an owner and the name of an operation.
func owners(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/operations.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		owner, name, ok := strings.Cut(line, " ")
		if !ok {
			t.Fatalf("testdata/operations.txt: %q: want an owner and an operation", line)
		}
		known[strings.TrimSpace(name)] = owner
	}
	return known
}

// A server is the command served.
type server struct {
	clear, secure string // addresses
	in            io.WriteCloser
	out           *bufio.Reader
}

func start(t *testing.T) *server {
	t.Helper()
	program := filepath.Join(t.TempDir(), "served")
	build := exec.Command("go", "build", "-cover", "-covermode=atomic", "-coverpkg="+module+"/...", "-o", program, "./served")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the server: got %v\n%s", err, out)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "GOCOVERDIR="+t.TempDir())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // ends the program
		_ = cmd.Wait()
	})
	s := &server{in: in, out: bufio.NewReader(out)}
	if _, err := fmt.Fscanln(s.out, &s.clear, &s.secure); err != nil {
		t.Fatalf("read the addresses of the server: %v", err)
	}
	return s
}

// do has the server obey a command.
func (s *server) do(t *testing.T, command string) {
	t.Helper()
	if _, err := fmt.Fprintln(s.in, command); err != nil {
		t.Fatal(err)
	}
	if line, err := s.out.ReadString('\n'); line != "done\n" {
		t.Fatalf("%s: got %q, %v", command, line, err)
	}
}

// A client sends one request after the other, on one connection or each on a new connection.
type client struct{ secure, two, once bool }

func (c client) open() func(*testing.T, string) {
	p := new(http.Protocols)
	p.SetHTTP1(!c.two)
	p.SetHTTP2(c.two && c.secure)
	p.SetUnencryptedHTTP2(c.two && !c.secure)
	h := &http.Client{Transport: &http.Transport{
		Protocols: p, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 1, DisableKeepAlives: c.once,
	}}
	return func(t *testing.T, url string) {
		t.Helper()
		resp, err := h.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || c.two != (resp.ProtoMajor == 2) {
			t.Fatalf("got %s %s, %v", resp.Proto, resp.Status, err)
		}
	}
}

func sortedNames(ops map[string]int) []operation {
	list := make([]operation, 0, len(ops))
	for name, count := range ops {
		list = append(list, operation{name, count})
	}
	slices.SortFunc(list, func(a, b operation) int { return strings.Compare(a.name, b.name) })
	return list
}
