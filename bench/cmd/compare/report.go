//go:build linux

package main

import (
	"context"

	"github.com/dunlinhttp/dunlin/bench/internal/layout"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

func reportCommand(args []string) error                          { return nil }
func diffCommand(args []string) error                            { return nil }
func gateCommand(ctx context.Context, args []string) error       { return nil }
func writeReport(folders layout.Folders, run *results.Run) error { return nil }
