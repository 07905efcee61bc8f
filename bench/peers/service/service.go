// Package service has the answers of the reference service, examples/users, for all peers in Go. Because they all use it,
// the peers differ only in the framework.
package service

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"
)

// Greeting is the body of /plaintext and the message of /json.
const Greeting = "Hello, World!"

// Bucket is the body of /headers, and CacheControl is its header Cache-Control.
const (
	Bucket       = "hello world!"
	CacheControl = "public,max-age=30"
)

// Framework has the same value for every peer, so that all answers have the same bytes.
const Framework = "dunlin"

// Message is the answer of /json.
type Message struct {
	Message string `json:"message"`
}

// UserAction is the answer of /users/{id}/{action}.
type UserAction struct {
	ID     string `json:"id"`
	Action string `json:"action"`
}

// User is one element of /api/v1/users.
type User struct {
	ID        int `json:"Id"`
	Age       int
	FirstName string `json:"First_Name"`
	LastName  string `json:"Last_Name"`
	Framework string
}

// Users makes 1,000 new users, like a service that has just read them from a database.
func Users() []User {
	users := make([]User, 1000)
	for i := range users {
		n := strconv.Itoa(i + 1)
		users[i] = User{
			ID:        i + 1,
			Age:       25,
			FirstName: "First_name" + n,
			LastName:  "Last_Name" + n,
			Framework: Framework,
		}
	}
	return users
}

// Sleep waits for a number of milliseconds. ms is the value of a query parameter. Sleep does not wait if ms is not a
// number.
func Sleep(ms string) {
	if n, err := strconv.Atoi(ms); err == nil {
		time.Sleep(time.Duration(n) * time.Millisecond)
	}
}

// LargeFileSize is the length of the body of /file, in bytes.
const LargeFileSize = 100_000_000

// LargeFile returns the path of the file for /file. It creates the file at the first call. The file is sparse, so that
// reading a disk is not measured. It has no name, so that it is removed when the process ends.
func LargeFile() string { return fmt.Sprintf("/proc/self/fd/%d", largeFile().Fd()) }

var largeFile = sync.OnceValue(func() *os.File {
	f, err := os.CreateTemp("", "dunlin-bench-file-*")
	if err == nil {
		err = errors.Join(f.Truncate(LargeFileSize), os.Remove(f.Name()))
	}
	if err != nil {
		panic(err)
	}
	return f // the file stays open
})

// An Address is the address on which a peer listens, and its certificate. Flags set both.
type Address struct {
	Addr              string
	CertFile, KeyFile string // empty without TLS
}

// ReadAddress defines the flags of an Address and parses all flags.
func ReadAddress() (a Address) {
	flag.StringVar(&a.Addr, "addr", "127.0.0.1:3000", "address to listen on")
	flag.StringVar(&a.CertFile, "tls-cert", "", "PEM `file` of the certificate: serve over TLS")
	flag.StringVar(&a.KeyFile, "tls-key", "", "PEM `file` of its key")
	flag.Parse()
	return a
}

// TLS returns the TLS configuration, or nil if there is no certificate. protocols is the list of protocols for ALPN.
func (a Address) TLS(protocols ...string) (*tls.Config, error) {
	if a.CertFile == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(a.CertFile, a.KeyFile)
	return &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: protocols}, err
}

// Ready prints the line from which the runner recognizes that the peer is listening.
func (a Address) Ready(peer string) {
	scheme := "http"
	if a.CertFile != "" {
		scheme = "https"
	}
	fmt.Printf("%s ready on %s://%s\n", peer, scheme, a.Addr)
}

// Listen listens on the address that the flags set, over TLS if there is a certificate, and prints the line of Ready. It
// ends the program if it fails. protocols is the list of protocols for ALPN.
func Listen(peer string, protocols ...string) net.Listener {
	a := ReadAddress()
	ln, err := net.Listen("tcp", a.Addr)
	if err != nil {
		Fail(peer, err)
	}
	config, err := a.TLS(protocols...)
	if err != nil {
		Fail(peer, err)
	}
	if config != nil {
		ln = tls.NewListener(ln, config)
	}
	a.Addr = ln.Addr().String()
	a.Ready(peer)
	return ln
}

// Fail ends the program with an error.
func Fail(peer string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", peer, err)
	os.Exit(1)
}
