//go:build compareprofile

package service

import (
	"log"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
)

// A program that is built with profiling serves net/http/pprof on a separate address. Programs that are measured are built
// without net/http/pprof, because a program that contains it samples its allocations.
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
