//go:build linux && go1.27

package engine_test

const mostTLSAllocs = 0
