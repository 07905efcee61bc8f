// Package h2 has no code of its own. Its tests are a client of HTTP/2 that says whatever it
// is told to and judges all that it is told (RFC 9113), and the clients of others. They run
// by TLS and in clear text on each engine, and know nothing of who reads the frames there.
package h2
