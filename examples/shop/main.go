// Shop is a bookshop: an example of a larger service with typed actions, their OpenAPI document and their tests. The books are
// in SQLite.
//
//	go run . -addr 127.0.0.1:8080                    serves the shop, and logs the staff's key; see /docs
//	dunlin openapi write -o shop.json .              writes its OpenAPI document
package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"flag"
	"log"
	"os"
	"strings"
	"sync"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/openapi"
	"github.com/dunlinhttp/dunlin/store"
	_ "github.com/dunlinhttp/dunlin/store/redis"
	_ "modernc.org/sqlite"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "where to listen")
	file := flag.String("db", ":memory:", "the database")
	key := flag.String("key", "", "what the staff sends as X-Staff-Key; a random one, which is logged, if not set")
	std := flag.Bool("std", false, "serve by net/http instead of the loop engine")
	proxies := flag.String("proxies", "", "trusted proxies, separated by commas")
	grace := flag.Duration("grace", 0, "how long to continue serving after a signal to stop")
	shares := flag.String("store", os.Getenv("DUNLIN_STORE"), "what replicas share, such as redis://10.0.0.1:6379; memory if not set")
	sharesKeys := flag.String("keys", "", "where idempotency keys are, so that they cannot fill what -store has; the same if not set, and memory of their own if that is memory")
	perHour := flag.Int("orders", 0, "how many orders an address may place in an hour; 0: any number")
	queue := flag.Duration("queue-target", 0, "how long requests may wait in an overload; 0: the default, negative: forever")
	flag.Parse()
	st, err := store.Open(*shares)
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	keys, bytes := st, int64(0)
	if *sharesKeys != "" {
		keys, err = store.Open(*sharesKeys)
	} else if *shares == "" {
		bytes = 32 << 20
		keys = store.NewMemory(store.MemoryConfig{MaxBytes: bytes})
	}
	if err != nil {
		log.Fatal(err)
	}
	defer keys.Close()
	db, err := open(*file)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	settings := dunlin.Config{Addr: *addr, Process: dunlin.ProcessConfig{DrainGrace: *grace}, Limits: dunlin.Limits{QueueTarget: *queue}}
	if *proxies != "" {
		settings.Proxy.Trusted = strings.Split(*proxies, ",")
	}
	printed := *key == ""
	if printed {
		*key = rand.Text()
	}
	if *std {
		settings.Engine = dunlin.EngineStd
	}
	app := dunlin.New(settings)
	(&shop{books: &catalogue{db}, key: *key, news: new(news), shared: newShared(st, keys, bytes, *perHour)}).register(app)
	if err := openapi.Export(app, config); err != nil {
		log.Fatal(err)
	}
	if printed {
		log.Printf("the staff's key, for X-Staff-Key, is %s", *key)
	}
	if err := app.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// open opens the database and creates missing tables.
func open(file string) (*sql.DB, error) {
	if file != ":memory:" { // other processes may write to the file at the same time
		file = "file:" + file + "?_pragma=busy_timeout(30000)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)&_txlock=immediate"
	}
	db, err := sql.Open("sqlite", file)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // SQLite has one writer, and each connection to :memory: would have a separate database
	_, err = db.Exec(`
		create table if not exists books (
			id integer primary key, added integer not null, version integer not null, isbn text not null unique, title text not null,
			author text not null, genre text not null, cents integer not null, stock integer not null, tags text not null,
			blurb text, cover blob, cover_type text);
		create table if not exists orders (id integer primary key, at integer not null, mail text not null, cents integer not null);
		insert or ignore into books values
			(1, 1767225600000, 1, '9780142437247', 'Moby-Dick', 'Herman Melville', 'novel', 1299, 1000, '["sea"]', null, null, null),
			(2, 1767225600000, 1, '9780141439587', 'Emma', 'Jane Austen', 'novel', 899, 1000, '', 'A matchmaker', null, null);`)
	if err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// news sends notices to all listeners. A slow listener misses some of them.
type news struct {
	mu        sync.Mutex
	listeners map[chan Notice]bool
}

func (n *news) join() (notices <-chan Notice, leave func()) {
	c := make(chan Notice, 16)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners == nil {
		n.listeners = map[chan Notice]bool{}
	}
	n.listeners[c] = true
	return c, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.listeners, c)
	}
}

func (n *news) tell(notice Notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.listeners {
		select {
		case c <- notice:
		default:
		}
	}
}
