// Command floor does the minimum work for a request that is possible in Go on this kernel: it has one epoll loop, searches a
// head only for the empty line at its end, and sends prepared answers. It is not a server for real use. It shows which part
// of the time of other servers is caused by the framework.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"runtime"
	"syscall"

	"github.com/dunlinhttp/dunlin/bench/peers/service"
)

// uuid is the ID in the requests of the scenario param.
const uuid = "8e605ad7-554a-450d-a72d-d0098d336e8e"

var headEnd = []byte("\r\n\r\n")

func main() {
	addr := flag.String("addr", "127.0.0.1:3000", "address to listen on")
	closing := flag.Bool("close", false, "close each connection after its first answer")
	flag.Parse()
	runtime.LockOSThread()
	log.Fatal("floor: ", serve(*addr, *closing))
}

func serve(addr string, closing bool) error {
	listener, err := listen(addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", addr, err)
	}
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	if err := watch(epoll, listener); err != nil {
		return fmt.Errorf("watch the listener: %w", err)
	}
	fmt.Printf("floor ready on http://%s\n", addr)

	answers := prepare(closing)
	events := make([]syscall.EpollEvent, 256)
	in, out := make([]byte, 64<<10), make([]byte, 0, 64<<10)
	for {
		n, err := syscall.EpollWait(epoll, events, -1)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait: %w", err)
		}
		for _, event := range events[:n] {
			fd := int(event.Fd)
			if fd == listener {
				accept(epoll, listener)
				continue
			}
			n, err := syscall.Read(fd, in)
			if err == syscall.EAGAIN || err == syscall.EINTR {
				continue
			}
			if n <= 0 {
				syscall.Close(fd)
				continue
			}
			out = answers.append(out[:0], in[:n])
			if len(out) > 0 {
				syscall.Write(fd, out)
			}
			if closing && len(out) > 0 {
				syscall.Close(fd)
			}
		}
	}
}

func listen(addr string) (int, error) {
	tcp, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return 0, err
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, err
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: tcp.Port, Addr: [4]byte(tcp.IP.To4())}); err != nil {
		return 0, err
	}
	return fd, syscall.Listen(fd, syscall.SOMAXCONN)
}

func accept(epoll, listener int) {
	for {
		fd, _, err := syscall.Accept4(listener, syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
		if err != nil {
			return
		}
		syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
		if err := watch(epoll, fd); err != nil {
			syscall.Close(fd)
		}
	}
}

func watch(epoll, fd int) error {
	event := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)}
	return syscall.EpollCtl(epoll, syscall.EPOLL_CTL_ADD, fd, &event)
}

// answers has complete responses by the first byte of the path.
type answers struct {
	byFirst [256][]byte
	other   []byte
}

func prepare(closing bool) *answers {
	jsonBody, err := json.Marshal(service.Message{Message: service.Greeting})
	if err != nil {
		log.Fatal(err)
	}
	connection := ""
	if closing {
		connection = "Connection: close\r\n"
	}
	response := func(status, headers, body string) []byte {
		return fmt.Appendf(nil, "HTTP/1.1 %s\r\nServer: floor\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n%s%sContent-Length: %d\r\n\r\n%s",
			status, connection, headers, len(body), body)
	}
	const text = "Content-Type: text/plain; charset=utf-8\r\n"
	a := &answers{other: response("404 Not Found", text, "404")}
	a.byFirst['p'] = response("200 OK", text, service.Greeting)
	a.byFirst['j'] = response("200 OK", "Content-Type: application/json\r\n", string(jsonBody))
	a.byFirst['u'] = response("200 OK", text, uuid)
	a.byFirst['h'] = response("200 OK", text+"Cache-Control: "+service.CacheControl+"\r\n", service.Bucket)
	return a
}

// append appends the answers to all requests that are complete in in. It does not support a head that arrives in two reads,
// because the load generators write complete requests.
func (a *answers) append(out, in []byte) []byte {
	for {
		end := bytes.Index(in, headEnd)
		if end < 0 {
			return out
		}
		answer := a.other
		const path = len("GET /")
		if end > path && a.byFirst[in[path]] != nil {
			answer = a.byFirst[in[path]]
		}
		out = append(out, answer...)
		in = in[end+len(headEnd):]
	}
}
