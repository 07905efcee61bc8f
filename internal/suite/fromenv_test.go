package suite_test

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	. "github.com/dunlinhttp/dunlin/internal/suite"
	"github.com/dunlinhttp/dunlin/stats"
)

// environment sets exactly the given variables with the prefix DUNLIN_ until the test ends.
func environment(t *testing.T, variables map[string]string) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, value, _ := strings.Cut(v, "="); strings.HasPrefix(name, "DUNLIN_") {
			t.Setenv(name, value) // restores it
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, value := range variables {
		t.Setenv(name, value)
	}
}

func TestFromEnv(t *testing.T) {
	environment(t, map[string]string{
		"DUNLIN_ADDR": "127.0.0.1:0", "DUNLIN_ENGINE": "std", "DUNLIN_TLS_ADDR": ":8443", "DUNLIN_H2C": "upgrade", "DUNLIN_MEMORY_LIMIT": "16MiB",
		"DUNLIN_MAX_BODY": "1MiB", "DUNLIN_MAX_HEAD": "32KiB", "DUNLIN_QUEUE_TARGET": "-1s", "DUNLIN_TRUSTED_PROXIES": "loopback, 10.0.0.0/8",
		"DUNLIN_UNCLEAN_PATHS": "refuse", "DUNLIN_ROUTE_STATS": "off", "DUNLIN_TIMEOUT": "",
		"DUNLIN_TLS_CERT": "cert.pem", "DUNLIN_HSTS": "1h", "DUNLIN_HEAD_TIMEOUT": "2s", "DUNLIN_MEMORY_TIMEOUT": "3s", "DUNLIN_TCP_KEEP_ALIVE": "-1s", "DUNLIN_ADAPTIVE_LIMIT": "true",
		"DUNLIN_PROXY_PROTOCOL": "true", "DUNLIN_DRAIN_GRACE": "5s",
	})
	config := dunlin.Config{Timeouts: dunlin.Timeouts{Action: time.Second}, Addr: ":80"}
	if err := dunlin.FromEnv(&config); err != nil {
		t.Fatal(err)
	}
	want := dunlin.Config{
		Addr: "127.0.0.1:0", Engine: dunlin.EngineStd, TLS: dunlin.TLSConfig{Addr: ":8443", Cert: "cert.pem", HSTS: time.Hour}, H2C: dunlin.H2CUpgrade,
		Limits: dunlin.Limits{
			Memory:      16 << 20,
			MaxBody:     1 << 20,
			MaxHead:     32 << 10,
			QueueTarget: -time.Second, Adaptive: true,
		},
		Proxy: dunlin.ProxyConfig{Trusted: []string{"loopback", "10.0.0.0/8"}, Protocol: true}, UncleanPaths: dunlin.UncleanPathsRefuse, RouteStats: stats.Off,
		Timeouts: dunlin.Timeouts{Action: time.Second, Head: 2 * time.Second, Memory: 3 * time.Second, TCPKeepAlive: -time.Second}, Process: dunlin.ProcessConfig{DrainGrace: 5 * time.Second},
	}
	if !reflect.DeepEqual(config, want) {
		t.Errorf("%+v\nwant %+v", config, want)
	}
}

func TestFromEnvReportsAllErrors(t *testing.T) {
	environment(t, map[string]string{
		"DUNLIN_ADDR": ":80", "DUNLIN_ENGINE": "fast", "DUNLIN_MEMORY_LIMIT": "16 apples", "DUNLIN_H2C": "ja", "DUNLIN_ADR": ":80", "DUNLIN_LOGGER": "x",
		"DUNLIN_TLS": "x", "DUNLIN_ROUTE_STATS": "1", "DUNLIN_RESTART": "1:2:3",
	})
	var config dunlin.Config
	err := dunlin.FromEnv(&config)
	if err == nil {
		t.Fatal("no error")
	}
	WantContains(t, "the error", err.Error(), "dunlin: FromEnv: ",
		"DUNLIN_ADR is not a setting: did you mean DUNLIN_ADDR?\n", `DUNLIN_ENGINE is "fast": engine "fast" is none of auto, loop and std`, `DUNLIN_H2C is "ja": it must be one of off, on, upgrade`,
		"DUNLIN_LOGGER is not a setting", "DUNLIN_TLS is not a setting", `DUNLIN_MEMORY_LIMIT is "16 apples": size "16 apples" has unit "apples"`, `DUNLIN_ROUTE_STATS is "1": it must be one of auto, on, off`)
	WantLacks(t, "the error", err.Error(), "RESTART")
	if config.Addr != "" {
		t.Errorf("the settings were changed in spite of errors: %q", config.Addr)
	}
}
