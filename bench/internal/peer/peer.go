// Package peer defines the servers that are compared: how each is built and started, how its version is found, and which part
// of the reference service it serves.
package peer

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/dunlinhttp/dunlin/bench/internal/layout"
	"github.com/dunlinhttp/dunlin/bench/internal/proc"
)

// A Peer is a server that is compared.
type Peer struct {
	Name     string
	Language string
	Args     []string // arguments in addition to -addr
	// Only lists the checks that the peer is expected to pass. nil means all checks.
	Only    []string
	InShort bool // takes part in a run with -short
	TLS     bool // uses TLS
	H2      bool // the load uses HTTP/2
	Untyped bool // serves files, and their names do not show their media type
	Backend bool // uses the database and the upstream server of a run
	// Scenarios lists the scenarios in which the peer takes part. nil means all scenarios. A variant of another peer lists only the
	// scenarios in which it differs from that peer.
	Scenarios []string
	// On is the peer whose server runs the handlers of this framework. It is empty if the framework has its own server. A peer
	// with On does not take part in scenarios that measure only connections.
	On string

	kind   kind
	source string // package folder, crate or configuration, depending on the kind
	module string // module from which the peer's version is read; empty for this repository

	profiled bool
}

// Dunlin is the name of the peer to which the promised figures of internal/gate/promises.json apply. DunlinFromStd runs the handlers of
// NetHTTP on Dunlin's loop engine. DunlinStd is Dunlin on the std engine. DunlinBackend connects to the database with package backend.
const (
	Dunlin        = "dunlin"
	DunlinStd     = "dunlin-std"
	DunlinBackend = "dunlin-backend"
	DunlinFromStd = "dunlin-fromstd"
	NetHTTP       = "nethttp"
)

// All has all peers: first those of the variable peers in the order of the tables, from Dunlin to floor (a program that does the
// minimum of work), then those of h2Peers.
var All = append(peers, h2Peers()...)

var peers = []Peer{
	{Name: Dunlin, Language: "Go", InShort: true, kind: goProgram, source: "../examples/users", Args: []string{"-engine", "loop"}},
	{Name: DunlinStd, Language: "Go", InShort: true, kind: goProgram, source: "../examples/users", Args: []string{"-engine", "std"}},
	{
		Name: "dunlin-16MiB", Language: "Go", kind: goProgram, source: "../examples/users",
		Args:      []string{"-engine", "loop", "-memory", "16MiB"},
		Scenarios: []string{"users", "slow-readers", "overload"},
	},
	{Name: NetHTTP, Language: "Go", InShort: true, kind: goProgram, source: "./peers/nethttp", module: "std"},
	{
		Name: DunlinFromStd, Language: "Go", kind: goProgram, source: "./peers/nethttp", Args: []string{"-loop"},
		Scenarios: []string{"from-std", "file"},
	},
	{Name: "chi", Language: "Go", On: "nethttp", kind: goProgram, source: "./peers/chi", module: "github.com/go-chi/chi/v5"},
	{Name: "gin", Language: "Go", On: "nethttp", InShort: true, kind: goProgram, source: "./peers/gin", module: "github.com/gin-gonic/gin"},
	{Name: "echo", Language: "Go", On: "nethttp", kind: goProgram, source: "./peers/echo", module: "github.com/labstack/echo/v5"},
	{Name: "fasthttp", Language: "Go", InShort: true, kind: goProgram, source: "./peers/fasthttp", module: "github.com/valyala/fasthttp"},
	{Name: "fiber", Language: "Go", On: "fasthttp", InShort: true, kind: goProgram, source: "./peers/fiber", module: "github.com/gofiber/fiber/v3"},
	{Name: "hertz", Language: "Go", InShort: true, kind: goProgram, source: "./peers/hertz", module: "github.com/cloudwego/hertz"},
	{Name: "fib", Language: "Go", InShort: true, kind: goProgram, source: "./peers/fib/fib", module: fibModule},
	stage("nethttp-array", "nethttpstages", "std", "-stage", "array"),
	stage("nethttp-slice", "nethttpstages", "std", "-stage", "slice"),
	stage("nethttp-semaphore", "nethttpstages", "std", "-stage", "semaphore"),
	stage("fiber-array", "fiberstages", "github.com/gofiber/fiber/v3", "-stage", "array"),
	stage("fiber-slice", "fiberstages", "github.com/gofiber/fiber/v3", "-stage", "slice"),
	stage("fiber-semaphore", "fiberstages", "github.com/gofiber/fiber/v3", "-stage", "semaphore"),
	stage("dunlin-array", "dunlinstages", "", "-stage", "array", "-engine", "loop"),
	stage("dunlin-slice", "dunlinstages", "", "-stage", "slice", "-engine", "loop"),
	stage("dunlin-slice-16MiB", "dunlinstages", "", "-stage", "slice", "-engine", "loop", "-memory", "16MiB"),
	stage("dunlin-std-slice", "dunlinstages", "", "-stage", "slice", "-engine", "std"),
	bulk(Dunlin+"-bulk", "dunlinbulk", ""),
	bulk(dunlin24+"-bulk", "dunlinbulk", "", "-memory", "24MiB"),
	bulk(NetHTTP+"-bulk", "nethttpbulk", "std"),
	secured(Dunlin, "../examples/users", "", "-engine", "loop"),
	secured(NetHTTP, "./peers/nethttp", "std"),
	secured("fasthttp", "./peers/fasthttp", "github.com/valyala/fasthttp"),
	secured("fib", "./peers/fib/fib", fibModule),
	secured(dunlin24, "../examples/users", "", "-engine", "loop", "-memory", "24MiB").in("tls-users"),
	onDatabase(Dunlin, "dunlindb", "", "-engine", "loop").inShort(),
	onDatabase(DunlinBackend, "dunlindb", "", "-engine", "loop", "-backend").inShort(),
	onDatabase(DunlinStd, "dunlindb", "", "-engine", "std").inShort(),
	onDatabase(NetHTTP, "nethttpdb", "std").inShort(),
	onDatabase("chi", "chidb", "github.com/go-chi/chi/v5"),
	onDatabase("gin", "gindb", "github.com/gin-gonic/gin"),
	onDatabase("echo", "echodb", "github.com/labstack/echo/v5"),
	onDatabase("fasthttp", "fasthttpdb", "github.com/valyala/fasthttp").inShort(),
	onDatabase("fiber", "fiberdb", "github.com/gofiber/fiber/v3").inShort(),
	onDatabase("hertz", "hertzdb", "github.com/cloudwego/hertz"),
	onDatabase("fib", "../fib/fibdb", fibModule).inShort(),
	{Name: "axum", Language: "Rust", InShort: true, kind: rustProgram, source: "axum-peer", module: "axum"},
	{Name: "actix", Language: "Rust", kind: rustProgram, source: "actix-peer", module: "actix-web"},
	{
		Name: "nginx", Language: "C", kind: nginxServer, source: "peers/nginx/nginx.conf",
		Only: []string{"plaintext", "json", "param", "headers", "paths", "health"},
	},
	{
		Name: "floor", Language: "Go", InShort: true, kind: goProgram, source: "./peers/floor", module: "std",
		Only: []string{"plaintext", "json", "param", "headers"},
	},
}

// Stages has the servers of the scenario stages.
var Stages = []string{
	"nethttp-array", "nethttp-slice", "nethttp-semaphore", "fiber-array", "fiber-slice", "fiber-semaphore",
	"dunlin-array", "dunlin-slice", "dunlin-slice-16MiB", "dunlin-std-slice",
}

// ByTLS has the servers of the scenarios over TLS. For comparison it also has Dunlin in clear text.
var ByTLS = []string{Dunlin, Dunlin + overTLS, NetHTTP + overTLS, "fasthttp" + overTLS, "fib" + overTLS}

// UsersByTLS has the servers of the scenario that measures memory over TLS.
var UsersByTLS = []string{dunlin24 + overTLS, NetHTTP + overTLS, "fasthttp" + overTLS, "fib" + overTLS, "hertz"}

// Bulk has the servers of the scenarios that transfer large amounts of data over TLS.
var Bulk = []string{Dunlin + "-bulk" + overTLS, dunlin24 + "-bulk" + overTLS, NetHTTP + "-bulk" + overTLS}

const (
	overTLS  = "-tls"
	dunlin24 = "dunlin-24MiB"

	fibModule = "github.com/lesismal/fib"
)

// secured returns a peer that uses TLS.
func secured(name, source, module string, args ...string) Peer {
	return Peer{
		Name: name + overTLS, Language: "Go", InShort: true, TLS: true, kind: goProgram, source: source, module: module,
		Args: args, Only: []string{"plaintext", "json", "param", "users", "health"},
		Scenarios: []string{
			"tls-64", "tls-1000", "tls-handshakes", "tls-flood", "tls-users", "tls-idle-memory", "tls-hello-memory",
			"h2-64", "h2-json", "h2-param", "h2-users",
		},
	}
}

// in returns the peer for only one scenario.
func (p Peer) in(scenario string) Peer {
	p.InShort, p.Scenarios = false, []string{scenario}
	return p
}

// stage returns a server of Stages.
func stage(name, source, module string, args ...string) Peer {
	return Peer{
		Name: name, Language: "Go", kind: goProgram, source: "./peers/stages/" + source, module: module,
		Args: args, Only: []string{"users", "health"}, Scenarios: []string{"stages"},
	}
}

// onDatabase returns a peer that uses the database.
func onDatabase(name, source, module string, args ...string) Peer {
	return Peer{
		Name: name + "-db", Language: "Go", Backend: true, kind: goProgram, source: "./peers/db/" + source, module: module, Args: args,
		Only:      []string{"plaintext", "db", "queries", "updates", "cached", "fortunes", "slow", "wait", "compute", "health"},
		Scenarios: OnDatabase,
	}
}

// OnDatabase lists the scenarios of the peers that use the database.
var OnDatabase = []string{"db", "db-256", "db-512", "queries", "fortunes", "updates", "cached", "waits", "mixed"}

// inShort returns the peer as one that takes part in a run with -short.
func (p Peer) inShort() Peer {
	p.InShort = true
	return p
}

// bulk returns a server of Bulk.
func bulk(name, source, module string, args ...string) Peer {
	return Peer{
		Name: name + overTLS, Language: "Go", TLS: true, kind: goProgram, source: "./peers/bulk/" + source, module: module,
		Args: args, Only: []string{"health"}, Scenarios: []string{"tls-bulk-down", "tls-bulk-up"},
	}
}

// Named returns the peers with the given names.
func Named(names []string) ([]Peer, error) {
	var peers []Peer
	for _, name := range names {
		i := slices.IndexFunc(All, func(p Peer) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no peer is called %q", name)
		}
		peers = append(peers, All[i])
	}
	return peers, nil
}

// Serves reports whether the peer is expected to pass a check. A check that uses the database applies only to peers that list
// it in Only.
func (p Peer) Serves(check string) bool {
	if p.Only == nil {
		return !slices.ContainsFunc(rowChecks, func(c Check) bool { return c.Name == check })
	}
	return slices.Contains(p.Only, check)
}

// Source returns the source from which the peer is built. Variants of a peer have the same source.
func (p Peer) Source() string { return p.source }

// In reports whether the peer takes part in a scenario.
func (p Peer) In(scenario string) bool {
	return p.Scenarios == nil || slices.Contains(p.Scenarios, scenario)
}

// A kind describes how a running server is made from source.
type kind struct {
	tool    string // a program that must be in the PATH
	build   func(ctx context.Context, f layout.Folders, p Peer) (binary string, err error)
	version func(f layout.Folders, p Peer, binary string) string
	args    func(f layout.Folders, p Peer, addr string) ([]string, error)
}

// A Built is a peer that can be started.
type Built struct {
	Peer
	Binary  string
	Version string
	folders layout.Folders
}

// Build builds the peer, or finds an installed program. If something is missing, the error names it.
func Build(ctx context.Context, f layout.Folders, p Peer) (Built, error) {
	if _, err := exec.LookPath(p.kind.tool); err != nil {
		return Built{}, fmt.Errorf("%s is not installed", p.kind.tool)
	}
	binary, err := p.kind.build(ctx, f, p)
	if err != nil {
		return Built{}, fmt.Errorf("build: %w", err)
	}
	return Built{Peer: p, Binary: binary, Version: p.kind.version(f, p, binary), folders: f}, nil
}

// Command returns the command that starts the server on addr. more are further arguments that a scenario needs.
func (b Built) Command(addr string, cores []int, more ...string) (proc.Command, error) {
	args, err := b.kind.args(b.folders, b.Peer, addr)
	if err != nil {
		return proc.Command{}, err
	}
	return proc.Command{Path: b.Binary, Args: append(args, more...), Dir: b.folders.Build, Cores: cores}, nil
}

// Describe returns the command in a form that a reader can repeat in the folder bench.
func (b Built) Describe() string {
	command, err := b.Command("127.0.0.1:3000", nil)
	if err != nil {
		return ""
	}
	if relative, err := filepath.Rel(b.folders.Bench, command.Path); err == nil && filepath.IsLocal(relative) {
		command.Path = relative
	}
	for i, arg := range command.Args {
		if relative, err := filepath.Rel(b.folders.Bench, arg); err == nil && filepath.IsAbs(arg) {
			command.Args[i] = relative
		}
	}
	return command.String()
}

func fileSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Size returns the size of the program in bytes.
func (b Built) Size() (int64, error) { return fileSize(b.Binary) }
