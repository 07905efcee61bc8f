// Command live measures how often the garbage collector runs. The program keeps a given amount of memory live and allocates
// memory for each request. It uses either Dunlin with its memory limit, or net/http with the runtime's limit. It sends
// requests to itself and prints the number of collections.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/gcpace"
)

// perRequest is the number of bytes that are allocated for an answer, in pieces of pieceSize.
const (
	perRequest = 20 << 10
	pieceSize  = 512
)

// kept is the live memory in pieces. Each request replaces only the last piece.
var kept [][]byte

func main() {
	limit := flag.Int64("limit", 64<<20, "memory limit in `bytes`")
	live := flag.Int64("live", 28<<20, "`bytes` that are kept")
	first := flag.Int("first", 1000, "`requests` before it is counted")
	requests := flag.Int("requests", 10_000, "`requests` while it is counted")
	plain := flag.Bool("plain", false, "serve by net/http with the runtime's memory limit and percentage")
	whole := flag.Bool("whole", false, "with -plain: the limit is that of the process, of which the runtime has what the program leaves")
	flag.Parse()
	if *plain && *whole {
		*limit -= gcpace.ProgramBytes()
	}
	collections, err := run(*plain, *limit, *live, *first, *requests)
	if err != nil {
		fmt.Fprintln(os.Stderr, "live:", err)
		os.Exit(1)
	}
	fmt.Println(collections)
}

func run(plain bool, limit, live int64, first, requests int) (collections uint32, err error) {
	for n := int64(0); n < live; n += pieceSize {
		kept = append(kept, make([]byte, pieceSize))
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	ready := make(chan struct{})
	served := make(chan error, 1)
	if plain {
		debug.SetMemoryLimit(limit)
		mux := http.NewServeMux()
		mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, work()) })
		go func() { served <- http.Serve(ln, mux) }()
		close(ready)
	} else {
		app := dunlin.New(dunlin.Config{
			Engine: dunlin.EngineLoop, Limits: dunlin.Limits{Memory: dunlin.ByteSize(limit)}, Logger: slog.New(slog.DiscardHandler),
			Ready: func(net.Addr, dunlin.Engine) { close(ready) },
		})
		app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text(work()) })
		go func() { served <- app.Serve(ln) }()
	}
	select {
	case <-ready:
	case err := <-served:
		return 0, err
	}
	return count(ln.Addr().String(), first, requests)
}

// count sends two groups of requests on one connection. The sizes of the groups are first and requests. count returns the
// number of collections during the second group.
func count(addr string, first, requests int) (collections uint32, err error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	in := bufio.NewReader(c)
	before := uint32(0)
	for i := range first + requests {
		if i == first {
			before = seen()
		}
		if err := ask(c, in); err != nil {
			return 0, err
		}
	}
	return seen() - before, nil
}

func seen() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumGC
}

var request = []byte("GET / HTTP/1.1\r\nHost: live\r\n\r\n")

// ask sends a request and reads the answer, a head and a body of two bytes, without allocating.
func ask(c net.Conn, in *bufio.Reader) error {
	if _, err := c.Write(request); err != nil {
		return err
	}
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == 2 {
			_, err := in.Discard(len(done))
			return err
		}
		if string(line[:5]) == "HTTP/" && string(line[9:12]) != "200" {
			return errors.New("answered " + string(line))
		}
	}
}

const done = "ok"

// work allocates perRequest bytes and keeps the last piece until the next request.
func work() string {
	for range perRequest / pieceSize {
		kept[len(kept)-1] = make([]byte, pieceSize)
	}
	return done
}
