package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
	"golang.org/x/mod/sumdb/dirhash"
)

// tag commits a release of HEAD in a temporary worktree and tags every published module. It returns an error and does not
// change the repository if the version is not valid, if the checkout has uncommitted changes, or if a tag exists.
func tag(ctx context.Context, root, version string) error {
	if semver.Canonical(version) != version || semver.Build(version) != "" {
		return fmt.Errorf("%q is not a version such as v0.1.0", version)
	}
	if changes, err := git(ctx, root, "status", "--porcelain"); err != nil {
		return err
	} else if changes != "" {
		return fmt.Errorf("uncommitted changes:\n%s", changes)
	}
	temp, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	tree := filepath.Join(temp, "tree")
	if _, err := git(ctx, root, "worktree", "add", "--detach", tree); err != nil {
		return err
	}
	defer git(context.WithoutCancel(ctx), root, "worktree", "remove", "--force", tree)

	all, err := modules(tree)
	if err != nil {
		return err
	}
	if err := unused(ctx, root, version, all); err != nil {
		return err
	}
	if err := prepare(ctx, root, tree, version, all); err != nil {
		return err
	}
	if _, err := git(ctx, tree, "commit", "--quiet", "--allow-empty", "--message", "Release "+version); err != nil {
		return err
	}
	for _, m := range all {
		if _, err := git(ctx, tree, "tag", "--annotate", "--message", m.path+" "+version, m.tag(version)); err != nil {
			return err
		}
		fmt.Println(m.tag(version))
	}
	return nil
}

// unused returns an error if one of the tags for the version exists.
func unused(ctx context.Context, root, version string, all []mod) error {
	tags, err := git(ctx, root, "tag", "--list")
	if err != nil {
		return err
	}
	for _, m := range all {
		if slices.Contains(strings.Fields(tags), m.tag(version)) {
			return fmt.Errorf("tag %s exists", m.tag(version))
		}
	}
	return nil
}

// prepare writes and stages the go.mod and go.sum of every module in tree. The checksum of a module includes its go.sum.
// Therefore a module is prepared after the modules that it requires.
func prepare(ctx context.Context, root, tree, version string, all []mod) error {
	var sums []string // lines of go.sum for the modules that were prepared
	for _, m := range all {
		if err := m.publish(tree, version, all); err != nil {
			return err
		}
		if err := addSums(filepath.Join(tree, m.dir, "go.sum"), m, sums, all); err != nil {
			return err
		}
		if _, err := git(ctx, tree, "add", "--all"); err != nil {
			return err
		}
		staged, err := git(ctx, tree, "write-tree")
		if err != nil {
			return err
		}
		lines, err := checksums(m, version, root, staged)
		if err != nil {
			return err
		}
		sums = append(sums, lines...)
	}
	return nil
}

// addSums adds to a go.sum file the lines for the modules that m requires.
func addSums(name string, m mod, sums []string, all []mod) error {
	text, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool { return line == "" })
	for _, sum := range sums {
		if path, _, _ := strings.Cut(sum, " "); slices.Contains(own(m, all), path) {
			lines = append(lines, sum)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	slices.Sort(lines)
	return os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o666)
}

// checksums returns the two lines of go.sum for a published module. tree is the hash of the git tree that contains the
// module.
func checksums(m mod, version, root, tree string) ([]string, error) {
	temp, err := os.MkdirTemp("", "module")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	archive := filepath.Join(temp, "zip")
	if err := m.archive(archive, version, root, tree); err != nil {
		return nil, err
	}
	sum, err := dirhash.HashZip(archive, dirhash.Hash1)
	if err != nil {
		return nil, err
	}
	gomod, err := m.file.Format()
	if err != nil {
		return nil, err
	}
	modSum, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(gomod)), nil
	})
	if err != nil {
		return nil, err
	}
	return []string{
		fmt.Sprintf("%s %s %s", m.path, version, sum),
		fmt.Sprintf("%s %s/go.mod %s", m.path, version, modSum),
	}, nil
}

// git runs a git command in a folder and returns the output without the last line break.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}
