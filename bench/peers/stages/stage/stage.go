// Package stage has the stages of a blog post about a service whose memory use began with 897 MB: an array that
// is passed by value, a slice, and a semaphore around the work. It also has the post's counter of goroutines.
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

// A Name is the name of a stage.
type Name string

// The stages, in the order of the post.
const (
	Array     Name = "array"
	Slice     Name = "slice"
	Semaphore Name = "semaphore"
)

// UnmarshalText sets n to the name in text. It returns an error for an unknown name.
func (n *Name) UnmarshalText(text []byte) error {
	switch name := Name(text); name {
	case Array, Slice, Semaphore:
		*n = name
		return nil
	}
	return fmt.Errorf("there are %s, %s and %s", Array, Slice, Semaphore)
}

// MarshalText returns the name.
func (n Name) MarshalText() ([]byte, error) { return []byte(n), nil }

// Flag defines the flag -stage and returns its value.
func Flag() *Name {
	name := Slice
	flag.TextVar(&name, "stage", Slice, "of the post: array, slice or semaphore")
	return &name
}

// UsersArray returns the users as an array, which each assignment copies.
func UsersArray() [1000]service.User {
	var users [1000]service.User
	fill(&users)
	return users
}

// UsersSlice returns the same users as a slice.
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

// CountGoroutines prints the number of goroutines ten times a second. The post printed it once a second.
func CountGoroutines() {
	go func() {
		for range time.Tick(100 * time.Millisecond) {
			fmt.Fprintln(os.Stdout, "num go routine", runtime.NumGoroutine())
		}
	}()
}
