package store_test

import (
	"context"
	"fmt"
	"time"

	"github.com/dunlinhttp/dunlin/store"
)

func ExampleUpdate() {
	st, err := store.Open("") // os.Getenv("DUNLIN_STORE")
	if err != nil {
		panic(err)
	}
	defer st.Close()
	ctx := context.Background()
	for _, word := range []string{"one", "two"} {
		err := store.Update(ctx, st, "words", time.Hour, func(old []byte) ([]byte, error) {
			return append(append([]byte(nil), old...), word+" "...), nil
		})
		if err != nil {
			panic(err)
		}
	}
	words, _ := st.Get(ctx, "words")
	fmt.Printf("%q\n", words.Value)
	// Output: "one two "
}

func ExampleStore_add() {
	st := store.NewMemory(store.MemoryConfig{})
	defer st.Close()
	for range 3 {
		n, _ := st.Add(context.Background(), "visits", 1, time.Hour)
		fmt.Println(n)
	}
	// Output:
	// 1
	// 2
	// 3
}

func ExampleStore_publish() {
	st := store.NewMemory(store.MemoryConfig{})
	defer st.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	received := make(chan string)
	_ = st.Subscribe(ctx, "news", func(m store.Message) { received <- string(m.Body) })
	_ = st.Publish(ctx, "news", []byte("hello"))
	fmt.Println(<-received)
	// Output: hello
}

func ExampleGuard() {
	remote := store.NewMemory(store.MemoryConfig{}) // one on another machine, say
	st := store.Guard(remote, store.GuardConfig{Timeout: 100 * time.Millisecond})
	defer st.Close()
	_, err := st.Get(context.Background(), "k")
	fmt.Println(err, st.Stats().Failures)
	// Output: store: no value under this key 0
}
