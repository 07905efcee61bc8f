package peer

import (
	"bufio"
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/dunlinhttp/dunlin/bench/internal/layout"
	"github.com/dunlinhttp/dunlin/bench/internal/proc"
)

var goProgram = kind{
	tool: "go",
	build: func(ctx context.Context, f layout.Folders, p Peer) (string, error) {
		dir, pkg, err := moduleOf(filepath.Join(f.Bench, p.source))
		if err != nil {
			return "", err
		}
		folder, args := f.Build, []string{"build"}
		if p.profiled {
			folder, args = filepath.Join(f.Build, "profiled"), append(args, "-tags", profileTag)
		}
		binary := filepath.Join(folder, filepath.Base(pkg))
		_, err = proc.Run(ctx, proc.Command{Path: "go", Args: append(args, "-o", binary, pkg), Dir: dir, Env: []string{"GOTOOLCHAIN=" + Toolchain}})
		return binary, err
	},
	version: func(f layout.Folders, p Peer, binary string) string {
		info, err := buildinfo.ReadFile(binary)
		if err != nil {
			return ""
		}
		if p.module == "std" {
			return info.GoVersion
		}
		for _, dependency := range info.Deps {
			if dependency.Path == p.module {
				return dependency.Version
			}
		}
		return "this commit"
	},
	args: flagAddr,
}

var rustProgram = kind{
	tool: "cargo",
	build: func(ctx context.Context, f layout.Folders, p Peer) (string, error) {
		target := filepath.Join(f.Build, "rust")
		_, err := proc.Run(ctx, proc.Command{
			Path: "cargo",
			Args: []string{"build", "--release", "--locked", "--quiet", "--package", p.source, "--target-dir", target},
			Dir:  filepath.Join(f.Bench, "peers", "rust"),
		})
		return filepath.Join(target, "release", p.source), err
	},
	version: func(f layout.Folders, p Peer, _ string) string {
		lock, err := os.ReadFile(filepath.Join(f.Bench, "peers", "rust", "Cargo.lock"))
		if err != nil {
			return ""
		}
		return lockedVersion(lock, p.module)
	},
	args: flagAddr,
}

var nginxServer = kind{
	tool: "nginx",
	build: func(_ context.Context, _ layout.Folders, _ Peer) (string, error) {
		return exec.LookPath("nginx")
	},
	version: versionFromOutput("-v", "nginx version: nginx/"),
	args: func(f layout.Folders, p Peer, addr string) ([]string, error) {
		dir := filepath.Join(f.Build, "nginx")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		template, err := os.ReadFile(filepath.Join(f.Bench, p.source))
		if err != nil {
			return nil, err
		}
		listen, secrets := addr, ""
		if p.TLS {
			cert, key, err := certificate(f.Build)
			if err != nil {
				return nil, err
			}
			listen, secrets = addr+" ssl", "ssl_certificate "+cert+"; ssl_certificate_key "+key+";"
		}
		if p.H2 {
			listen += " http2"
		}
		conf := strings.NewReplacer("@ADDR@", addr, "@LISTEN@", listen, "@TLS@", secrets, "@DIR@", dir).Replace(string(template))
		path := filepath.Join(dir, filepath.Base(p.source))
		return []string{"-c", path, "-e", "stderr"}, os.WriteFile(path, []byte(conf), 0o644)
	},
}

// Toolchain is the Go release with which all peers in Go are built. The peer fib needs Go 1.27.3 or later.
const Toolchain = "go1.27.4"

// moduleOf finds the module that contains folder. It returns the root folder of the module and the path of the package relative to
// it.
func moduleOf(folder string) (dir, pkg string, err error) {
	for dir = folder; ; dir = filepath.Dir(dir) {
		if _, err = os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			pkg, err = filepath.Rel(dir, folder)
			return dir, "./" + pkg, err
		}
		if dir == filepath.Dir(dir) {
			return "", "", err
		}
	}
}

// versionFromOutput returns a function that finds the version of a program: it runs the program with the option and removes prefix
// from the output.
func versionFromOutput(option, prefix string) func(f layout.Folders, p Peer, binary string) string {
	return func(_ layout.Folders, _ Peer, binary string) string {
		out, err := exec.Command(binary, option).CombinedOutput()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(strings.TrimPrefix(string(out), prefix))
	}
}

func flagAddr(f layout.Folders, p Peer, addr string) ([]string, error) {
	args := append([]string{"-addr", addr}, p.Args...)
	if !p.TLS {
		return args, nil
	}
	cert, key, err := certificate(f.Build)
	return append(args, "-tls-cert", cert, "-tls-key", key), err
}

// lockedVersion returns the version of a crate in the file Cargo.lock.
func lockedVersion(lock []byte, crate string) string {
	lines := bufio.NewScanner(bytes.NewReader(lock))
	for lines.Scan() {
		if lines.Text() != fmt.Sprintf("name = %q", crate) || !lines.Scan() {
			continue
		}
		if version, found := strings.CutPrefix(lines.Text(), "version = "); found {
			return strings.Trim(version, `"`)
		}
	}
	return ""
}
