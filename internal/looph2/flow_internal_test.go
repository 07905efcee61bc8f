//go:build linux

package looph2

import (
	"fmt"
	"os"
	"reflect"
	"testing"
)

// TestMain checks that no test has written to the state that all streams without a flow share.
func TestMain(m *testing.M) {
	code := m.Run()
	if !reflect.ValueOf(&still).Elem().IsZero() {
		fmt.Fprintf(os.Stderr, "a stream has written to the flow of those that have none: %+v\n", &still)
		code = 1
	}
	os.Exit(code)
}
