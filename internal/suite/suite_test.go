package suite_test

import (
	"runtime"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

func TestAdapters(t *testing.T) {
	t.Run("memory", func(t *testing.T) { suite.Run(t, suite.InMemory) })
	t.Run("std", func(t *testing.T) { suite.Run(t, suite.OverTCP(dunlin.EngineStd)) })
	t.Run("loop", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("the loop engine runs on Linux only")
		}
		suite.Run(t, suite.OverTCP(dunlin.EngineLoop))
	})
	t.Run("std by TLS", func(t *testing.T) { suite.Run(t, suite.OverTLS(dunlin.EngineStd)) })
	t.Run("loop by TLS", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("the loop engine runs on Linux only")
		}
		suite.Run(t, suite.OverTLS(dunlin.EngineLoop))
	})
}
