//go:build linux

package runner

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/internal/scenario"
)

// describe returns the record of a run with the time, the options and the machine. Values that are unavailable are empty.
func describe(ctx context.Context, env *scenario.Env, o Options) *results.Run {
	root := env.Folders.Root
	return &results.Run{
		Started:  time.Now().UTC().Truncate(time.Second),
		Commit:   said(ctx, root, "git", "rev-parse", "HEAD"),
		Modified: said(ctx, root, "git", "status", "--porcelain", "--untracked-files=no") != "",
		Options:  o.Text,
		Machine: results.Machine{
			CPU:    fileField("/proc/cpuinfo", "model name"),
			Cores:  runtime.NumCPU(),
			Memory: fileField("/proc/meminfo", "MemTotal"),
			Kernel: said(ctx, "", "uname", "-sr"),
			Go:     said(ctx, env.Folders.Bench, "go", "env", "GOVERSION"),
			Tools: map[string]string{
				"wrk":      firstWords(said(ctx, "", "wrk", "-v"), 2),
				"h2load":   firstWords(said(ctx, "", "h2load", "--version"), 2),
				"cargo":    firstWords(said(ctx, "", "cargo", "--version"), 2),
				"postgres": env.DatabaseVersion(),
			},
			Pinned: len(env.Cores.Server) > 0,
		},
	}
}

// said returns the output of a program on stdout and stderr. It ignores the exit status, because wrk -v fails.
func said(ctx context.Context, dir, program string, args ...string) string {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	out, _ := cmd.CombinedOutput()
	return strings.TrimSpace(string(out))
}

func firstWords(s string, n int) string {
	words := strings.Fields(s)
	return strings.Join(words[:min(n, len(words))], " ")
}

func fileField(path, field string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == field {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
