// Package idioms has the same small service for chi, Echo, Fiber, gin and Dunlin: the code that the pages in docs/coming-from
// show side by side. A test checks that all versions answer alike.
package idioms

import "sync"

// A User is a record of the service.
type User struct {
	ID   int    `json:"id"`
	Name string `json:"name" validate:"required"`
}

var users = struct {
	sync.Mutex
	all []User
}{all: []User{{1, "Ada"}}}

func findUser(id int) (User, bool) {
	users.Lock()
	defer users.Unlock()
	if id < 1 || id > len(users.all) {
		return User{}, false
	}
	return users.all[id-1], true
}

func addUser(name string) User {
	users.Lock()
	defer users.Unlock()
	u := User{len(users.all) + 1, name}
	users.all = append(users.all, u)
	return u
}

// ownerOf returns the name of the key's owner, or "" for an unknown key.
func ownerOf(key string) string {
	if key == "secret" {
		return "Grace"
	}
	return ""
}
