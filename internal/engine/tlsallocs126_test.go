//go:build linux && !go1.27

package engine_test

// Crypto/tls makes one for each record that it reads.
const mostTLSAllocs = 1
