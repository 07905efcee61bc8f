//go:build linux

package runner

import (
	"reflect"
	"testing"

	"github.com/dunlinhttp/dunlin/bench/internal/peer"
)

func TestVariantsAreBuiltOneAfterTheOther(t *testing.T) {
	peers, err := peer.Named([]string{"dunlin", "chi", "dunlin-std", "gin", "dunlin-16MiB"})
	if err != nil {
		t.Fatal(err)
	}
	want := [][]int{{0, 2, 4}, {1}, {3}}
	if got := bySource(peers); !reflect.DeepEqual(got, want) {
		t.Errorf("got groups %v, want %v: two builds of one program would write the same file", got, want)
	}
}
