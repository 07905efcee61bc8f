package main

import (
	"iter"
	"strconv"

	"github.com/dunlinhttp/dunlin"
)

// A User is an element of a list of a thousand users. Each request builds a new list.
type User struct {
	Id         int
	Age        int
	First_Name string
	Last_Name  string
	Framework  string
}

const userCount = 1000

func newUser(i int) User {
	n := strconv.Itoa(i)
	return User{Id: i, Age: 25, First_Name: "First_name" + n, Last_Name: "Last_Name" + n, Framework: "dunlin"}
}

func listUsers(*dunlin.Request) dunlin.Response {
	users := make([]User, 0, userCount)
	for i := 1; i <= userCount; i++ {
		users = append(users, newUser(i))
	}
	return dunlin.JSON(users)
}

// streamUsers sends the array of listUsers without building the slice.
func streamUsers(*dunlin.Request) dunlin.Response { return dunlin.JSONSeq(eachUser()) }

func eachUser() iter.Seq[User] {
	return func(yield func(User) bool) {
		for i := 1; i <= userCount && yield(newUser(i)); i++ {
		}
	}
}
