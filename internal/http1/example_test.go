package http1_test

import (
	"fmt"

	"github.com/dunlinhttp/dunlin/internal/http1"
)

// One request arrives in two reads; the response is appended to one buffer.
func Example() {
	lim := http1.DefaultLimits()
	var head http1.Head
	var date http1.DateCache

	in := []byte("GET /hello?name=Ada HTTP/1.1\r\nHost: exam")
	n, err := head.Parse(in, &lim)
	fmt.Println("first read:", n, err)

	in = append(in, "ple.org\r\n\r\n"...)
	n, err = head.Parse(in, &lim)
	fmt.Println("second read:", n, err)
	fmt.Printf("%v %s for %s\n", head.Method, head.Path(), head.Host())

	const body = "Hello!\n"
	out := http1.AppendStatusLine(nil, 200)
	out = http1.AppendField(out, "Content-Type", "text/plain")
	out = http1.AppendContentLength(out, int64(len(body)))
	out = date.AppendField(out, 784111777)
	out = append(out, http1.CRLF...)
	out = append(out, body...)
	fmt.Printf("%q\n", out)

	_, err = head.Parse([]byte("GET / HTTP/1.1\r\nHost : a\r\n"), &lim)
	fmt.Println(err.(http1.Error).Status(), err)

	// Output:
	// first read: 0 <nil>
	// second read: 51 <nil>
	// GET /hello for example.org
	// "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 7\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\nHello!\n"
	// 400 space in a field name or before its colon at byte 20 of the request head
}
