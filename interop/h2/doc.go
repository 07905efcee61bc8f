// Package h2 has only tests, of HTTP/2 servers from outside: with a client that can violate the protocol and checks all
// frames that it receives (RFC 9113), and with other clients. They run over TLS and in clear text on each engine.
package h2
