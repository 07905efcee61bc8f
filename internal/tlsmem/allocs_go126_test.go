//go:build !go1.27

package tlsmem

// mostAllocs: crypto/tls of Go 1.26 makes one for each record that it reads.
const mostAllocs = 1
