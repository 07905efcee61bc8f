//go:build compareprofile

package service

import (
	"log"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
)

// Programs built for profiles serve net/http/pprof on a separate address. Measured programs are built without it: a program
// that contains it has its allocations sampled.
func init() {
	addr := os.Getenv("COMPARE_PROFILE_ADDR")
	if addr == "" {
		return
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		log.Fatalf("serve profiles: %v", err)
	}
	go func() { log.Fatal(http.Serve(ln, nil)) }()
}
