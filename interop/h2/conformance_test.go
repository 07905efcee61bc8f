package h2_test

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	conformanceModule = "connectrpc.com/conformance"
	// Builds and requests take a while on a busy machine.
	conformanceTime = 8 * time.Minute
)

// All cases that are not about HTTP/3.
const conformanceConfig = `
features:
  versions: [HTTP_VERSION_1, HTTP_VERSION_2]
  protocols: [PROTOCOL_CONNECT, PROTOCOL_GRPC, PROTOCOL_GRPC_WEB]
  codecs: [CODEC_PROTO, CODEC_JSON]
  compressions: [COMPRESSION_IDENTITY, COMPRESSION_GZIP]
  supportsTlsClientCerts: true
  supportsHalfDuplexBidiOverHttp1: true
`

// The conformance suite of Connect, gRPC and gRPC-Web: its reference server, on connect-go, passes the same tests with Dunlin
// as with net/http. The test needs the suite's runner, whose version it uses:
//
//	go install connectrpc.com/conformance/cmd/connectconformance@latest
//
// It is not part of the checks of every change: building it takes longer than all other tests here.
func TestConnectConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("the suite takes a while to build")
	}
	if runtime.GOOS != "linux" {
		t.Skip("the loop engine runs on Linux only")
	}
	runner, err := exec.LookPath("connectconformance")
	if err != nil {
		t.Skipf("%v; go install %s/cmd/connectconformance@latest", err, conformanceModule)
	}
	ctx, cancel := context.WithTimeout(t.Context(), conformanceTime)
	defer cancel()
	server := buildConformanceServer(t, ctx, runner)
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte(conformanceConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	of := conformance(t, ctx, runner, config, server, "")
	got := conformance(t, ctx, runner, config, server, "loop")
	if got.total < 1000 || got.total != of.total {
		t.Errorf("%d cases, %d by net/http", got.total, of.total)
	}
	for name := range got.failed {
		if !of.failed[name] {
			t.Errorf("%s fails, but passes with net/http", name)
		}
	}
	t.Logf("%d cases: %d fail, %d by net/http", got.total, len(got.failed), len(of.failed))
}

// buildConformanceServer builds the reference server with the choice to be served by Dunlin. Its package is internal, so a
// copy of the module is changed.
func buildConformanceServer(t *testing.T, ctx context.Context, runner string) string {
	t.Helper()
	info, err := buildinfo.ReadFile(runner)
	if err != nil || info.Main.Path != conformanceModule {
		t.Fatalf("%s is not the runner of %s: %v", runner, conformanceModule, err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var module struct{ Dir, Error string }
	out, err := inFolder(ctx, dir, "go", "mod", "download", "-json", conformanceModule+"@"+info.Main.Version).Output()
	if jsonErr := json.Unmarshal(out, &module); err != nil || jsonErr != nil {
		if os.Getenv("DUNLIN_REQUIRE_ALL") != "" {
			t.Fatalf("DUNLIN_REQUIRE_ALL is set, and the source of %s %s is not to be had: got %v, %s", conformanceModule, info.Main.Version, err, module.Error)
		}
		t.Skipf("the source of %s %s is not to be had: %v, %s", conformanceModule, info.Main.Version, err, module.Error)
	}
	copied := filepath.Join(dir, "conformance")
	if err := os.CopyFS(copied, os.DirFS(module.Dir)); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(copied, "internal", "app", "referenceserver")
	ours, err := os.ReadFile(filepath.Join("testdata", "conformance", "server.go"))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := os.ReadFile(filepath.Join(folder, "server.go"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(theirs)
	for _, call := range []string{
		"server, err = newH1Server(ctx, handler, listenAddr, tlsConf)\n", "server, err = newH2Server(ctx, handler, listenAddr, tlsConf)\n",
	} {
		if strings.Count(text, call) != 1 {
			t.Fatalf("the reference server of %s has changed: no %q", info.Main.Version, call)
		}
		text = strings.Replace(text, call, "if server, err = newDunlinServer(ctx, handler, listenAddr, tlsConf); server == nil && err == nil {\n"+call+"}\n", 1)
	}
	for name, data := range map[string]string{"server.go": text, "dunlin.go": string(ours)} {
		path := filepath.Join(folder, name)
		if err := errors.Join(os.Chmod(folder, 0o700), os.RemoveAll(path), os.WriteFile(path, []byte(data), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	const dunlin = "github.com/dunlinhttp/dunlin"
	binary := filepath.Join(dir, "server")
	for _, args := range [][]string{
		{"mod", "edit", "-require", dunlin + "@v0.0.0", "-replace", dunlin + "=" + root},
		{"build", "-mod=mod", "-o", binary, "./cmd/referenceserver"},
	} {
		if out, err := inFolder(ctx, copied, "go", args...).CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
	}
	return binary
}

func inFolder(ctx context.Context, dir, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	return cmd
}

// A verdict is the result of the runner.
type verdict struct {
	total  int
	failed map[string]bool
}

var (
	conformanceTotal = regexp.MustCompile(`(?m)^Total cases: (\d+)$`)
	conformanceFail  = regexp.MustCompile(`(?m)^FAILED: (.+?):?$`)
	conformanceSum   = regexp.MustCompile(`(?m)^(\d+) passed, (\d+) failed`)
)

// conformance runs the suite on the server, served by an engine, or by net/http for "".
func conformance(t *testing.T, ctx context.Context, runner, config, server, engine string) verdict {
	t.Helper()
	cmd := inFolder(ctx, t.TempDir(), runner, "--mode", "server", "--conf", config, "--", server, "-port", "0")
	cmd.Env = append(cmd.Env, "DUNLIN_ENGINE="+engine)
	cmd.WaitDelay = patience
	out, err := cmd.CombinedOutput() // an error, too, if a case fails
	sum := conformanceSum.FindSubmatch(out)
	if sum == nil {
		t.Fatalf("run conformance tests: %v\n%s", err, out)
	}
	total := conformanceTotal.FindSubmatch(out)
	if total == nil {
		t.Fatalf("got no number of cases in\n%s", out)
	}
	v := verdict{total: number(t, total[1]), failed: map[string]bool{}}
	for _, match := range conformanceFail.FindAllSubmatch(out, -1) {
		v.failed[string(match[1])] = true
	}
	if n := number(t, sum[2]); n != len(v.failed) || number(t, sum[1])+n != v.total {
		t.Fatalf("got %s, but %d names in the output", sum[0], len(v.failed))
	}
	return v
}

func number(t *testing.T, text []byte) int {
	t.Helper()
	n, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
