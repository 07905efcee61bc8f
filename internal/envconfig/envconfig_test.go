package envconfig_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/envconfig"
)

type mode uint8

type limits struct {
	MaxOpen int
	Wait    time.Duration `env:"WAIT_TIME"`
}

type settings struct {
	Addr       string
	TLSAddr    string
	H2CUpgrade bool
	MaxHead    int
	MaxBody    int64
	Rate       int
	IdleTime   time.Duration
	Proxies    []string
	Mode       mode
	At         time.Time // a TextUnmarshaler
	Limits     limits
	Ready      func()
	hidden     string
}

var choices = envconfig.Choices{reflect.TypeFor[mode](): {"off", "on"}}

func TestFill(t *testing.T) {
	s := settings{Addr: "kept", hidden: "kept"}
	err := envconfig.Fill("APP", &s, []string{
		"APP_TLS_ADDR=:8443", "APP_H2C_UPGRADE=true", "APP_MAX_HEAD=64KiB", "APP_MAX_BODY=16MiB", "APP_RATE=-1", "APP_IDLE_TIME=1m30s",
		"APP_PROXIES=10.0.0.0/8, loopback,", "APP_MODE=on", "APP_AT=2026-01-02T03:04:05Z", "APP_MAX_OPEN=7", "APP_WAIT_TIME=1s", "APP_ADDR=",
		"OTHER_ADDR=x", "APPLE=x", "PATH=/bin",
	}, choices)
	if err != nil {
		t.Fatal(err)
	}
	want := settings{
		Addr: "kept", TLSAddr: ":8443", H2CUpgrade: true, MaxHead: 64 << 10, MaxBody: 16 << 20, Rate: -1, IdleTime: 90 * time.Second,
		Proxies: []string{"10.0.0.0/8", "loopback"}, Mode: 1, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Limits: limits{MaxOpen: 7, Wait: time.Second}, hidden: "kept",
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got %+v, want %+v", s, want)
	}
}

func TestFillReportsEveryWrongVariable(t *testing.T) {
	s := settings{Addr: "kept"}
	err := envconfig.Fill("APP", &s, []string{
		"APP_ADDR=new", "APP_H2C_UPGRADE=maybe", "APP_MAX_BODY=16 apples", "APP_IDLE_TIME=30", "APP_MODE=auto", "APP_AT=now",
		"APP_MAX_HAED=1", "APP_READY=1", "APP_HIDDEN=1", "APP_RATE=99999999999999999999",
	}, choices)
	const want = `APP_AT is "now": parsing time "now" as "2006-01-02T15:04:05Z07:00": cannot parse "now" as "2006"
APP_H2C_UPGRADE is "maybe": it must be true or false
APP_HIDDEN is not a setting
APP_IDLE_TIME is "30": it must be a duration such as 500ms, 30s or 1m30s
APP_MAX_BODY is "16 apples": it must be a whole number, or a size such as 64KiB
APP_MAX_HAED is not a setting: did you mean APP_MAX_HEAD?
APP_MODE is "auto": it must be one of off, on
APP_RATE is "99999999999999999999": it must be a whole number, or a size such as 64KiB
APP_READY is not a setting`
	if err == nil || err.Error() != want {
		t.Errorf("error:\n%v\nwant:\n%s", err, want)
	}
	if s.Addr != "kept" {
		t.Error("the settings were changed despite an error")
	}
}

func TestFillSkipsReservedVariables(t *testing.T) {
	if err := envconfig.Fill("DUNLIN", new(settings), []string{"DUNLIN_RESTART=1:2:3", "DUNLIN_STORE=redis://127.0.0.1"}, nil); err != nil {
		t.Error(err)
	}
}

func TestWords(t *testing.T) {
	for name, want := range map[string]string{
		"Addr": "ADDR", "TLSAddr": "TLS_ADDR", "H2C": "H2C", "H2CUpgrade": "H2C_UPGRADE", "DisableGCPacing": "DISABLE_GC_PACING",
		"MaxConnectionsPerAddress": "MAX_CONNECTIONS_PER_ADDRESS", "HSTS": "HSTS",
	} {
		if got := envconfig.Words(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
