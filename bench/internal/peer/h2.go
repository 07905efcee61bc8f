package peer

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/dunlinhttp/dunlin/bench/internal/layout"
	"github.com/dunlinhttp/dunlin/bench/peers/service"
)

// H2ByTLS has the servers of the scenarios with HTTP/2 over TLS. For comparison it also has Dunlin with
// HTTP/1.1 over TLS.
var H2ByTLS = []string{Dunlin + overH2, NetHTTP + overH2, "fib" + overH2, "hyper" + overH2, "nginx" + overH2, "nghttpd" + overH2, Dunlin + overTLS}

// H2InClear has the servers of the scenarios with HTTP/2 in clear text, with prior knowledge.
var H2InClear = []string{Dunlin + overH2C, NetHTTP + overH2C, "fib" + overH2C, "hyper" + overH2C, "nginx" + overH2C, "nghttpd" + overH2C}

const (
	overH2  = "-h2"
	overH2C = "-h2c"
)

// h2Peers returns all peers that use HTTP/2, over TLS or in clear text. Each scenario names its peers.
func h2Peers() []Peer {
	users := Peer{Name: Dunlin, Language: "Go", InShort: true, kind: goProgram, source: "../examples/users", Args: []string{"-engine", "loop"}}
	std := Peer{Name: NetHTTP, Language: "Go", InShort: true, kind: goProgram, source: "./peers/nethttp", module: "std"}
	fib := Peer{Name: "fib", Language: "Go", InShort: true, kind: goProgram, source: "./peers/fib/fib", module: fibModule}
	rust := Peer{Name: "hyper", Language: "Rust", InShort: true, kind: rustProgram, source: "hyper-peer", module: "hyper"}
	nginx := Peer{Name: "nginx", Language: "C", InShort: true, kind: nginxServer, source: "peers/nginx/h2.conf"}
	files := Peer{Name: "nghttpd", Language: "C++", InShort: true, kind: nghttpdServer, source: "peers/nghttpd", Untyped: true}
	program, fixed := []string{"plaintext", "json", "param", "users", "health"}, []string{"plaintext", "json", "param", "health"}
	return []Peer{
		users.by(overH2, true, "plaintext", "json", "param", "users", "sleep", "health"),
		std.by(overH2, true, program...),
		fib.by(overH2, true, program...),
		rust.by(overH2, true, program...),
		nginx.by(overH2, true, fixed...),
		files.by(overH2, true, "plaintext", "health"),
		users.by(overH2C, false, "plaintext", "json", "param", "users", "sleep", "health"),
		std.by(overH2C, false, "plaintext", "json", "param", "users", "sleep", "health"),
		fib.by(overH2C, false, program...),
		rust.by(overH2C, false, program...),
		nginx.by(overH2C, false, fixed...),
		files.by(overH2C, false, "plaintext", "health"),
	}
}

// by returns the variant of the peer that uses HTTP/2.
func (p Peer) by(suffix string, secure bool, only ...string) Peer {
	p.Name += suffix
	p.TLS, p.H2, p.Only = secure, true, only
	p.Scenarios = []string{}
	for _, s := range []struct {
		name  string
		peers []string
	}{
		{"h2-64", H2ByTLS}, {"h2-16x32", H2ByTLS}, {"h2-json", H2ByTLS}, {"h2-param", H2ByTLS}, {"h2-users", H2ByTLS},
		{"h2c-16x32", H2InClear}, {"h2-blocked", H2InClear[:2]}, {"h2-attacks", H2InClear[:2]},
	} {
		for _, name := range s.peers {
			if name == p.Name {
				p.Scenarios = append(p.Scenarios, s.name)
			}
		}
	}
	if !secure && p.kind.tool == goProgram.tool {
		p.Args = append(p.Args[:len(p.Args):len(p.Args)], "-h2c")
	}
	return p
}

// nghttpdServer is the example server of nghttp2, which serves files.
var nghttpdServer = kind{
	tool: "nghttpd",
	build: func(_ context.Context, f layout.Folders, _ Peer) (string, error) {
		dir := filepath.Join(f.Build, "nghttpd")
		for name, text := range map[string]string{"plaintext": service.Greeting, "healthz": "ok"} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return "", err
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				return "", err
			}
		}
		return exec.LookPath("nghttpd")
	},
	version: versionFromOutput("--version", "nghttpd nghttp2/"),
	args: func(f layout.Folders, p Peer, addr string) ([]string, error) {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		args := []string{"-d", filepath.Join(f.Build, "nghttpd"), "-a", host}
		if !p.TLS {
			return append(args, "--no-tls", port), nil
		}
		cert, key, err := certificate(f.Build)
		return append(args, port, key, cert), err
	},
}
