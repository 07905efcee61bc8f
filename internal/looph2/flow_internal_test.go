//go:build linux

package looph2

import (
	"fmt"
	"os"
	"reflect"
	"testing"
)

// TestMain sees to it that no test has written to what all streams without a flow have in common.
func TestMain(m *testing.M) {
	code := m.Run()
	if !reflect.ValueOf(&still).Elem().IsZero() {
		fmt.Fprintf(os.Stderr, "a stream has written to the flow of those that have none: %+v\n", &still)
		code = 1
	}
	os.Exit(code)
}
