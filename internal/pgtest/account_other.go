//go:build !unix

package pgtest

import (
	"syscall"
	"testing"
)

func ownAccount(testing.TB, string) *syscall.SysProcAttr { return nil }
