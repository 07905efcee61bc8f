//go:build go1.27

package tlsmem

const mostAllocs = 0
