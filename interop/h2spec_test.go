package interop_test

import (
	"net"
	"testing"

	"github.com/summerwind/h2spec"
	"github.com/summerwind/h2spec/config"
)

// TestH2spec runs h2spec in strict mode on a connection with a plain owner. It prints its test cases.
func TestH2spec(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go (&plainOwner{long: 300}).serve(nc)
		}
	}()
	ok, err := h2spec.Run(&config.Config{
		Host: "127.0.0.1", Port: ln.Addr().(*net.TCPAddr).Port, Path: "/", Timeout: patience, MaxHeaderLen: 4000, Strict: true,
	})
	if err != nil || !ok {
		t.Errorf("h2spec reports failures, see above (%v)", err)
	}
}
