package backend_test

import (
	"bufio"
	"context"
	"fmt"
	"net"

	"github.com/dunlinhttp/dunlin/backend"
)

// For pgx it is config.ConnConfig.DialFunc = backend.Dial.
func ExampleDial() {
	ln, _ := net.Listen("tcp", "127.0.0.1:0")
	defer ln.Close()
	go func() {
		c, _ := ln.Accept()
		fmt.Fprintln(c, "ready")
		c.Close()
	}()

	c, err := backend.Dial(context.Background(), "tcp", ln.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	line, _ := bufio.NewReader(c).ReadString('\n')
	fmt.Print(line)
	// Output: ready
}

// A dialer of one's own, here with a timeout, for rueidis:
//
//	option.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
//		c, err := d.DialContext(ctx, "tcp", addr)
//		if err != nil {
//			return nil, err
//		}
//		return backend.Wrap(c), nil
//	}
func ExampleWrap() {
	ln, _ := net.Listen("tcp", "127.0.0.1:0")
	defer ln.Close()
	d := net.Dialer{KeepAlive: -1}
	c, err := d.Dial("tcp", ln.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	c = backend.Wrap(c)
	fmt.Println(c.Close())
	// Output: <nil>
}
