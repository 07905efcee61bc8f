// Package stage has the stages of the post that began with 897 MB of memory: an array that is passed by value, a
// slice, and a semaphore around the work; and its counter of goroutines.
package stage

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/dunlinhttp/dunlin/bench/peers/service"
)

// A Name is one of the stages.
type Name string

// The stages, in the order of the post.
const (
	Array     Name = "array"
	Slice     Name = "slice"
	Semaphore Name = "semaphore"
)

// UnmarshalText takes the names.
func (n *Name) UnmarshalText(text []byte) error {
	switch name := Name(text); name {
	case Array, Slice, Semaphore:
		*n = name
		return nil
	}
	return fmt.Errorf("there are %s, %s and %s", Array, Slice, Semaphore)
}

// MarshalText is the name.
func (n Name) MarshalText() ([]byte, error) { return []byte(n), nil }

// Flag is the flag -stage.
func Flag() *Name {
	name := Slice
	flag.TextVar(&name, "stage", Slice, "of the post: array, slice or semaphore")
	return &name
}

// UsersArray returns an array, which is copied on each assignment.
func UsersArray() [1000]service.User {
	var users [1000]service.User
	fill(&users)
	return users
}

// UsersSlice returns the same as a slice of it.
func UsersSlice() []service.User {
	var users [1000]service.User
	fill(&users)
	return users[:]
}

func fill(users *[1000]service.User) {
	for i := range users {
		n := strconv.Itoa(i + 1)
		users[i] = service.User{ID: i + 1, Age: 25, FirstName: "First_name" + n, LastName: "Last_Name" + n, Framework: service.Framework}
	}
}

// CountGoroutines writes how many there are, ten times a second where the post had once.
func CountGoroutines() {
	go func() {
		for range time.Tick(100 * time.Millisecond) {
			fmt.Fprintln(os.Stdout, "num go routine", runtime.NumGoroutine())
		}
	}()
}
