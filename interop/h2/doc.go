// Package h2 tests Dunlin's HTTP/2 servers from outside. One group of tests uses a client that can violate the protocol and that
// checks all frames that it receives (RFC 9113). Another group uses common clients. The tests run on each engine, over TLS and
// in clear text.
package h2
