// Package h2 tests HTTP/2 servers from outside. Its client can violate the protocol, and checks all frames that it receives (RFC
// 9113). Other tests use common clients. The tests run over TLS and in clear text on each engine.
package h2
