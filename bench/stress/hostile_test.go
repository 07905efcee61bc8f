//go:build linux

package stress_test

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	expensiveLimit = 64 << 20
	expensiveBar   = expensiveLimit + expensiveLimit*15/100 // bytes of resident memory
	expensiveCost  = 3                                      // CPU time, as a multiple of an ordinary body's
	expensiveLong  = 64 << 10                               // bytes of an answer
	expensiveConns = 24
)

// An expensive describes a body that is designed to be expensive.
type expensive struct{ path, head, unit, tail string }

// text returns the body with about n bytes and at most the given number of units.
func (h expensive) text(n, limit int) string {
	times := max(1, min(limit, (n-len(h.head)-len(h.tail))/(len(h.unit)+1)))
	body := h.head + strings.Repeat(h.unit+",", times)[:times*(len(h.unit)+1)-1] + h.tail
	if h.path == "/form" {
		return strings.ReplaceAll(body, ",", "&")
	}
	return strings.TrimSuffix(body, h.tail) + strings.Repeat(" ", max(0, n-len(body))) + h.tail
}

// ordinary returns the reference for the other bodies of about n bytes. It has as many elements as an operation accepts. A
// longer body has longer texts instead of more elements.
func ordinary(n int) expensive {
	const most = 10_000 // records, of nine elements each
	name := strings.Repeat("Ada Lovelace ", max(1, (n/most-80)/len("Ada Lovelace ")))
	return expensive{"/typed/record", `{"records":[`, `{"name":"` + name + `","mail":"ada@example.org","age":36,"score":99.5,"tags":["a","b","c"]}`, "]}"}
}

// expensiveBodies returns generators of expensive bodies, by the name of their shape.
func expensiveBodies() map[string]expensive {
	long := func(unit string, n int) string { return strings.Repeat(unit, n) }
	unknown := `"` + long(`\u0061`, 4) + `":1`
	pairs := func(n int) string { // members of maps must differ
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"%d":1,`, i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	return map[string]expensive{
		"any of objects":            {"/typed/any", "[", `{"a":1}`, "]"},
		"any of empty objects":      {"/typed/any", "[", `{}`, "]"},
		"any of lists":              {"/typed/any", "[", `[1]`, "]"},
		"any of numbers":            {"/typed/any", "[", `12`, "]"},
		"any of texts":              {"/typed/any", "[", `"a"`, "]"},
		"any and a mistake":         {"/typed/any", "[", `{"a":1}`, "}"},
		"member any":                {"/typed/record", `{"any":[`, `{"a":{}}`, "]}"},
		"set of objects":            {"/typed/record", `{"set":[1,`, `[{"a":1},2]`, "]}"},
		"open members":              {"/typed/record", `{"open":{`, pairs(40_000), "}}"},
		"wide structs":              {"/typed/wide", "[", `{}`, "]"},
		"links to wide structs":     {"/typed/record", `{"links":[`, `{}`, "]}"},
		"defaults":                  {"/typed/record", `{"lazy":[`, `{}`, "]}"},
		"records":                   {"/typed/record", `{"records":[`, `{}`, "]}"},
		"lists of lists":            {"/typed/record", `{"lists":[`, `[]`, "]}"},
		"raw messages":              {"/typed/record", `{"raws":[`, `1`, "]}"},
		"times with odd offsets":    {"/typed/record", `{"times":[`, `"2026-01-31T15:04:05+01:23"`, "]}"},
		"maps in maps":              {"/typed/record", long(`{"nested":{"a":`, 400) + `{"bag":[`, `{}`, "]}" + long("}}", 400)},
		"decoded objects":           {"/decode/any", "[", `{"a":1}`, "]"},
		"decoded wide structs":      {"/decode/wide", "[", `{}`, "]"},
		"decoded invalid UTF-8":     {"/decode/any", "[\"", long("\xff", 500), "\"]"},
		"form of escapes":           {"/form", "", "a=" + long("%41", 5000), ""},
		"escaped names":             {"/typed/record", `{"records":[`, `{"\u006e\u0061\u006d\u0065":"a","\u006d\u0061\u0069\u006c":"a@b"}`, "]}"},
		"escaped names of a record": {"/typed/record", `{"records":[`, `{"\u0072\u0065\u0063\u006f\u0072\u0064\u0073":[]}`, "]}"},
		"escaped unknown names":     {"/typed/record", `{`, unknown, "}"},
		"escaped names in any":      {"/typed/any", "[", `{"\u006e\u0061\u006d\u0065":1}`, "]"},
		"escaped texts":             {"/typed/record", `{"tags":[`, `"\u006e\u0061\u006d\u0065\u006e\u0061\u006d\u0065"`, "]}"},
		"short escapes":             {"/typed/record", `{"tags":[`, `"` + long(`\n`, 100) + `"`, "]}"},
		"one text of escapes":       {"/typed/record", `{"name":"`, long(`\u0061`, 40), `"}`},
		"one name of escapes":       {"/typed/record", `{"`, long(`\u0061`, 40), `":1}`},
		"unknown members":           {"/typed/record", `{`, `"unknown":1`, "}"},
		"members twice":             {"/typed/record", `{`, `"age":1`, "}"},
		"texts twice":               {"/typed/record", `{"texts":{`, `"a":"b"`, "}}"},
		"keys that are no numbers":  {"/typed/record", `{"counts":{`, `"a":1`, "}}"},
		"wrong elements":            {"/typed/record", `{"records":[`, `1`, "]}"},
		"a mistake in each":         {"/typed/record", `{"records":[`, `{"mail":"a","age":-1,"x":1}`, "]}"},
		"long numbers":              {"/typed/record", `{"floats":[`, long("9", 990) + ".3", "]}"},
		"long json.Numbers":         {"/typed/record", `{"numbers":[`, long("9", 990) + "e-3", "]}"},
		"numbers with exponents":    {"/typed/record", `{"floats":[`, `1.2345678901234567e-300`, "]}"},
		"whole numbers as fraction": {"/typed/record", `{"ints":[`, `1.0e2`, "]}"},
		"deep":                      {"/typed/record", `{"any":` + long("[", 990), `1`, long("]", 990) + "}"},
		"too deep":                  {"/typed/record", `{"any":` + long("[", 2000), `1`, long("]", 2000) + "}"},
	}
}

// Bodies of at most 4 MiB that are designed to be expensive, 24 at once, need hardly more CPU time and memory than ordinary
// ones, and their answers are short.
func TestExpensiveJSON(t *testing.T) {
	for _, engine := range []string{"loop", "std"} {
		t.Run(engine, func(t *testing.T) {
			for _, size := range []int{400 << 10, 4<<20 - 100}[:either(1, 2)] {
				most := 99_000
				base := expensiveLoad(t, engine, ordinary(size), size, most)
				if base.status[http.StatusNoContent] == 0 {
					t.Fatalf("ordinary bodies are refused: %v", base.status)
				}
				t.Logf("ordinary bodies of %d KB: CPU %.2f ms, RSS %.1f MB, %v", size>>10, base.cpu.Seconds()*1000, float64(base.resident)/mb, base.status)
				for _, name := range slices.Sorted(maps.Keys(expensiveBodies())) {
					t.Run(fmt.Sprintf("%d KB/%s", size>>10, name), func(t *testing.T) {
						got := expensiveLoad(t, engine, expensiveBodies()[name], size, most)
						ratio := got.cpu.Seconds() / base.cpu.Seconds()
						t.Logf("CPU %.2f ms, %.2f times (bar: %d), RSS %.1f MB (bar: %.1f), answers of %d bytes, %v",
							got.cpu.Seconds()*1000, ratio, expensiveCost, float64(got.resident)/mb, float64(expensiveBar)/mb, got.longest, got.status)
						if got.longest > expensiveLong {
							t.Errorf("an answer of %d bytes", got.longest)
						}
						if got.resident > either[int64](expensiveBar*3/2, expensiveBar) {
							t.Errorf("%.1f MB are resident", float64(got.resident)/mb)
						}
						if *full && ratio > expensiveCost {
							t.Errorf("the CPU time of %.2f ordinary bodies", ratio)
						}
					})
				}
			}
		})
	}
}

// expensiveCosts are the costs of a kind of body for a service.
type expensiveCosts struct {
	cpu      time.Duration // for each body
	resident int64         // maximum
	longest  int           // length of the longest answer
	status   map[int]int
}

// expensiveLoad sends a body repeatedly, on all connections at once, to a new service.
func expensiveLoad(t *testing.T, engine string, h expensive, size, limit int) expensiveCosts {
	t.Helper()
	s := startService(t, nil, nil, "-engine", engine, "-memory", "64MiB")
	pid, addr := s.serving()
	defer func() { _ = s.first.Process.Kill() }()
	kind := "application/json"
	if h.path == "/form" {
		kind = "application/x-www-form-urlencoded"
	}
	body := h.text(size, limit)
	request := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: holds\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", h.path, kind, len(body), body)
	got := expensiveCosts{status: map[int]int{}}
	var mu sync.Mutex
	var sending sync.WaitGroup
	rounds := either(2, 12)
	before := cpuTime(t, pid)
	for range expensiveConns {
		sending.Go(func() {
			conn := connect(t, addr)
			answers := bufio.NewReader(conn)
			for range rounds {
				go func() { _, _ = io.WriteString(conn, request) }()
				resp, err := http.ReadResponse(answers, nil)
				if err != nil {
					t.Errorf("%s: %v", h.path, err)
					return
				}
				text, err := io.ReadAll(resp.Body)
				if resp.StatusCode == http.StatusInternalServerError {
					t.Errorf("%s: got %s %v", h.path, text, resp.Header)
				}
				mu.Lock()
				got.longest, got.status[resp.StatusCode] = max(got.longest, len(text)), got.status[resp.StatusCode]+1
				mu.Unlock()
				if resp.Close || err != nil {
					_ = conn.Close()
					conn = connect(t, addr)
					answers.Reset(conn)
				}
			}
		})
	}
	sending.Wait()
	got.cpu = (cpuTime(t, pid) - before) / time.Duration(expensiveConns*rounds)
	got.resident = resident(t, pid, "VmHWM")
	return got
}

// cpuTime is the processor time that a process has used.
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		missing(t, "the time of a process cannot be looked at: %v", err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	ticks := int64(0)
	for _, field := range fields[11:13] { // user, system
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatalf("time of process %d: %v", pid, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}
