package gcra

import (
	"reflect"
	"strconv"
	"testing"
)

// No two shards share a cache line, which two processors would then contend for.
func TestShardIsALine(t *testing.T) {
	size, first := reflect.TypeFor[shard]().Size(), reflect.TypeFor[Table]().Field(0)
	if strconv.IntSize == 64 && (size != 64 || first.Name != "shards") {
		t.Errorf("got a shard of %d bytes with the first field %s", size, first.Name)
	}
}
