package peers

import (
	"bytes"
	"reflect"
	"testing"
)

func FuzzParse(f *testing.F) {
	for _, p := range []*Packet{
		{Sender: 1, First: 1, Flags: Tick},
		{Sender: 1 << 31, First: 1 << 40, Name: "x", Messages: [][]byte{[]byte("one"), []byte("two")}},
		{Sender: 7, First: 3, Flags: Values | End, State: State{To: 9, Changes: []Change{
			{Topic: "x", Key: "k", Data: []byte("v"), At: 5, Holders: []Sender{1, 2}, Left: []byte("left")}, {Topic: "y", Key: "k", Data: []byte("d"), Gone: true},
		}}},
	} {
		f.Add(p.encode())
		got, err := Parse(p.encode())
		if err != nil || !reflect.DeepEqual(&got, p) {
			f.Errorf("got %+v, %v, want %+v", got, err, p)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Parse(b)
		if err != nil {
			return
		}
		again, err := Parse(p.encode())
		if err != nil || p.count() != again.count() || p.Name != again.Name || p.Flags != again.Flags {
			t.Errorf("%+v is parsed as %+v, %v", p, again, err)
		}
		if p.Flags&hasState == 0 && !bytes.Equal(p.encode(), b) {
			t.Errorf("%x is encoded as %x", b, p.encode())
		}
	})
}
