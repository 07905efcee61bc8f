package store

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

var openers struct {
	sync.Mutex
	by map[string]func(*url.URL) (Store, error)
}

// Register registers a function that opens stores for URLs of a scheme. Packages of stores call it from an init
// function. It panics if the scheme is already registered. It is safe for concurrent use.
func Register(scheme string, open func(*url.URL) (Store, error)) {
	openers.Lock()
	defer openers.Unlock()
	if openers.by == nil {
		openers.by = map[string]func(*url.URL) (Store, error){}
	}
	if _, taken := openers.by[scheme]; taken || scheme == "memory" {
		panic(fmt.Sprintf("store: Register: the scheme %q is registered already", scheme))
	}
	openers.by[scheme] = open
}

// Open opens the store of a URL, typically the value of an environment variable. "" and memory:// open a store in
// memory with default settings; memory://?max=64MiB sets MaxBytes. Other schemes require the import of a package that
// registers them:
//
//	import _ "github.com/dunlinhttp/dunlin/store/redis"
//
//	st, err := store.Open(os.Getenv("DUNLIN_STORE")) // redis://10.0.0.1:6379
//
// An unknown, malformed or repeated setting is an error. Errors do not contain the URL, because it may contain a password.
func Open(rawURL string) (Store, error) {
	if rawURL == "" {
		return NewMemory(MemoryConfig{}), nil
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("store: the URL of the store is malformed")
	}
	query, err := url.ParseQuery(u.RawQuery) // u.Query would ignore malformed settings
	if err != nil {
		return nil, fmt.Errorf("store: the settings in the URL of the store are malformed: %w", err)
	}
	if u.Fragment != "" {
		return nil, fmt.Errorf("store: the URL of the store has a #: in a password or a setting it is written %%23")
	}
	if u.Scheme == "memory" {
		if u.Opaque+u.Host != "" || strings.Trim(u.Path, "/") != "" {
			return nil, fmt.Errorf("store: a store in memory has no address: its URL is memory: or memory:?max=64MiB")
		}
		return openMemory(query)
	}
	openers.Lock()
	open := openers.by[u.Scheme]
	known := []string{"memory"}
	for scheme := range openers.by {
		known = append(known, scheme)
	}
	openers.Unlock()
	if open == nil {
		slices.Sort(known)
		return nil, fmt.Errorf("store: no package that opens %q is imported: there are %s", u.Scheme, strings.Join(known, ", "))
	}
	return open(u)
}

func openMemory(query url.Values) (Store, error) {
	var c MemoryConfig
	for name, values := range query {
		if name != "max" {
			return nil, fmt.Errorf("store: memory has no setting %q: there is max", name)
		}
		if len(values) > 1 {
			return nil, fmt.Errorf("store: the URL of the store says max %d times", len(values))
		}
		n, err := parseBytes(values[0])
		if err != nil {
			return nil, err
		}
		c.MaxBytes = n
	}
	return NewMemory(c), nil
}

// parseBytes parses a size such as 1024, 64KiB, 64MiB or 1GiB.
func parseBytes(s string) (int64, error) {
	digits, unit := s, int64(1)
	for i, suffix := range []string{"KiB", "MiB", "GiB"} {
		if rest, ok := strings.CutSuffix(s, suffix); ok {
			digits, unit = rest, 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n <= 0 || n > (1<<62)/unit {
		return 0, fmt.Errorf("store: memory: max is %q: it must be a number of bytes, as in 64MiB", s)
	}
	return n * unit, nil
}
