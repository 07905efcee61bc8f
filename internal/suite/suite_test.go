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
	for name, secure := range map[string]bool{"h2": true, "h2c": false} {
		t.Run("std by "+name, func(t *testing.T) {
			suite.RunH2(t, suite.OverH2(dunlin.EngineStd, secure), "304 of a response with a body") // net/http says what type the body would have
		})
		t.Run("loop by "+name, func(t *testing.T) {
			if runtime.GOOS != "linux" {
				t.Skip("the loop engine runs on Linux only")
			}
			suite.RunH2(t, suite.OverH2(dunlin.EngineLoop, secure))
		})
	}
}
