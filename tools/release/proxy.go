package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// proxy writes the modules that are tagged with a version below dir, in the layout that
// GOPROXY=file://dir requires (go.dev/ref/mod#goproxy-protocol).
func proxy(ctx context.Context, root, version, dir string) error {
	all, err := modules(root)
	if err != nil {
		return err
	}
	for _, m := range all {
		if err := m.serve(ctx, root, version, dir); err != nil {
			return fmt.Errorf("%s: %w", m.tag(version), err)
		}
	}
	return nil
}

// serve writes the files of one module for one version.
func (m mod) serve(ctx context.Context, root, version, dir string) error {
	escaped, err := module.EscapePath(m.path)
	if err != nil {
		return err
	}
	folder := filepath.Join(dir, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	gomod, err := git(ctx, root, "show", m.tag(version)+":"+filepath.ToSlash(filepath.Join(m.dir, "go.mod")))
	if err != nil {
		return err
	}
	date, err := git(ctx, root, "log", "-1", "--format=%cI", m.tag(version))
	if err != nil {
		return err
	}
	when, err := time.Parse(time.RFC3339, date)
	if err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{version, when.UTC()})
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"list":            []byte(version + "\n"),
		version + ".mod":  []byte(gomod + "\n"),
		version + ".info": info,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o666); err != nil {
			return err
		}
	}
	return m.archive(filepath.Join(folder, version+".zip"), version, root, m.tag(version))
}

// archive writes the zip file of the module at a revision of git.
func (m mod) archive(name, version, root, revision string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	subdir := m.dir
	if subdir == "." {
		subdir = ""
	}
	err = zip.CreateFromVCS(file, module.Version{Path: m.path, Version: version}, root, revision, subdir)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}
