package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// outside is a program that uses every published library module.
const outside = `package main

import (
	"github.com/dunlinhttp/dunlin"
	_ "github.com/dunlinhttp/dunlin/acme"
	_ "github.com/dunlinhttp/dunlin/auth"
	_ "github.com/dunlinhttp/dunlin/cbor"
	_ "github.com/dunlinhttp/dunlin/compress"
	_ "github.com/dunlinhttp/dunlin/middleware"
	_ "github.com/dunlinhttp/dunlin/openapi"
	_ "github.com/dunlinhttp/dunlin/otel"
	_ "github.com/dunlinhttp/dunlin/prometheus"
	_ "github.com/dunlinhttp/dunlin/store/redis"
	_ "github.com/dunlinhttp/dunlin/typed"
)

func main() {
	app := dunlin.New(dunlin.Config{})
	app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("ok") })
}
`

// command is the module that is installed by go install instead.
const command = "github.com/dunlinhttp/dunlin/cmd/dunlin"

// A release of the last commit can be fetched from a proxy by a program that has
// no other way to these modules.
func TestRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("builds every module")
	}
	ctx := context.Background()
	clone := cloned(t)
	commit, err := git(ctx, clone, "rev-parse", "--short=12", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	// The go command assumes that the files of a version never change, even after it was removed from the module cache.
	version := "v0.1.0-test.g" + commit
	if err := tag(ctx, clone, version); err != nil {
		t.Fatal(err)
	}
	if err := tag(ctx, clone, version); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("second release of the same version: got error %v, want one about an existing tag", err)
	}
	served := t.TempDir()
	if err := proxy(ctx, clone, version, served); err != nil {
		t.Fatal(err)
	}
	all, err := modules(clone)
	if err != nil {
		t.Fatal(err)
	}
	env := fetching(t, served, version)

	t.Run("program", func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "main.go"), outside)
		goCommand(t, dir, env, "mod", "init", "example.com/program")
		get := []string{"get"}
		for _, m := range all {
			if m.path == command {
				continue
			}
			get = append(get, m.path+"@"+version)
			if m.dir != "." && !strings.Contains(outside, `"`+m.path+`"`) {
				t.Errorf("the program of this test does not import %s", m.path)
			}
		}
		goCommand(t, dir, env, get...)
		goCommand(t, dir, env, "build", "-mod=mod", "-o", os.DevNull, ".")
	})
	t.Run("command", func(t *testing.T) {
		bin := t.TempDir()
		goCommand(t, t.TempDir(), append(env, "GOBIN="+bin), "install", command+"@"+version)
		if _, err := os.Stat(filepath.Join(bin, "dunlin")); err != nil {
			t.Error(err)
		}
	})
	// go.sum of the tagged commit has the checksums of the modules that the proxy serves.
	t.Run("checksums", func(t *testing.T) {
		if _, err := git(ctx, clone, "checkout", "--quiet", version); err != nil {
			t.Fatal(err)
		}
		for _, m := range all {
			goCommand(t, filepath.Join(clone, m.dir), env, "list", "-mod=readonly", "-deps", "./...")
		}
	})
}

func TestTagRefuses(t *testing.T) {
	ctx := context.Background()
	clone := cloned(t)
	for _, version := range []string{"", "0.1.0", "v0.1", "v1", "v0.1.0+meta"} {
		if err := tag(ctx, clone, version); err == nil {
			t.Errorf("version %q: got no error", version)
		}
	}
	write(t, filepath.Join(clone, "go.mod"), "module changed\n")
	if err := tag(ctx, clone, "v0.1.0-test"); err == nil || !strings.Contains(err.Error(), "uncommitted") {
		t.Errorf("changed file: got error %v, want one about uncommitted changes", err)
	}
	tags, err := git(ctx, clone, "tag", "--list", "*-test")
	if err != nil || tags != "" {
		t.Errorf("tags after the refusals: got %q, %v", tags, err)
	}
}

// Every published module contains the licence, because a module is distributed separately.
func TestLicences(t *testing.T) {
	root, err := git(context.Background(), ".", "rev-parse", "--show-toplevel")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := modules(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		got, err := os.ReadFile(filepath.Join(root, m.dir, "LICENSE"))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s/LICENSE is not a copy of LICENSE (%v)", m.dir, err)
		}
	}
}

// cloned returns a clone of the last commit of this repository.
func cloned(t *testing.T) string {
	t.Helper()
	ctx := context.Background()
	root, err := git(ctx, ".", "rev-parse", "--show-toplevel")
	if err != nil {
		t.Fatal(err)
	}
	clone := filepath.Join(t.TempDir(), "clone")
	if _, err := git(ctx, root, "clone", "--quiet", "--no-tags", root, clone); err != nil {
		t.Fatal(err)
	}
	for _, setting := range [][2]string{{"user.name", "Release test"}, {"user.email", "test@example.com"}} {
		if _, err := git(ctx, clone, "config", setting[0], setting[1]); err != nil {
			t.Fatal(err)
		}
	}
	return clone
}

// fetching returns the environment of a go command that finds the modules of this repository only in served. The version
// under test is removed from the module cache when the test ends.
func fetching(t *testing.T, served, version string) []string {
	t.Helper()
	known := strings.Split(goCommand(t, ".", os.Environ(), "env", "GOMODCACHE", "GOPROXY"), "\n")
	forget := func() {
		for _, pattern := range []string{"github.com/dunlinhttp", "cache/download/github.com/dunlinhttp"} {
			removeVersion(t, filepath.Join(known[0], filepath.FromSlash(pattern)), version)
		}
	}
	forget() // remove leftovers of an interrupted run
	t.Cleanup(forget)
	return append(os.Environ(),
		"GOPROXY=file://"+filepath.ToSlash(served)+","+known[1],
		"GONOSUMDB=github.com/dunlinhttp/*",
		"GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local")
}

// removeVersion removes the files of a version below a folder of the module cache,
// which the go command makes read-only.
func removeVersion(t *testing.T, dir, version string) {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			if os.IsNotExist(err) {
				return nil
			}
			return err
		}
		name := d.Name()
		if strings.HasSuffix(name, "@"+version) || strings.HasPrefix(name, version+".") || name == "list" && filepath.Base(filepath.Dir(path)) == "@v" {
			found = append(found, path)
			if d.IsDir() {
				return filepath.SkipDir
			}
		}
		return nil
	})
	for _, path := range found {
		_ = filepath.WalkDir(path, func(path string, d os.DirEntry, _ error) error {
			if d != nil && d.IsDir() {
				return os.Chmod(path, 0o777)
			}
			return nil
		})
		if removed := os.RemoveAll(path); err == nil {
			err = removed
		}
	}
	if err != nil {
		t.Error(err)
	}
}

func goCommand(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
