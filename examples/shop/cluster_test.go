//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Three replicas of the shop behind HAProxy share a Redis Cluster of three masters. Limits, orders and baskets apply to all
// replicas together. Neither an update nor a failure of one part fails a request that another part can serve. The test checks
// counts, and nothing that depends on durations.
func TestBeyondOneMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: three replicas, Redis and HAProxy take half a minute")
	}
	f := newFleet(t)
	v := newVisitors(t, f)
	c := &cluster{fleet: f, visitors: v, db: f.openDatabase(t)}
	for _, part := range []struct {
		name string
		test func(*testing.T)
	}{
		{"a limit counts for all replicas", c.limit},
		{"one order, sent a thousand times", c.duplicates},
		{"a basket that many change", c.baskets},
		{"a rolling restart", c.rollingRestart},
		{"a replica is killed", c.kill},
		{"Redis is paused", c.pause},
		{"a master is replaced", c.failover},
	} {
		began := time.Now()
		if !t.Run(part.name, part.test) {
			return // the following tests depend on this one
		}
		t.Logf("%s: %.1f s", part.name, time.Since(began).Seconds())
	}
}

// A cluster is the fleet, its visitors, and the state that the parts of the test share.
type cluster struct {
	*fleet
	*visitors
	db      *catalogue
	first   string // the answer to the order that was sent a thousand times
	cookies []string
	copies  []int64   // in the basket of each cookie
	limited time.Time // when the limits began to be used
}

const limited = 100 // addresses

func (c *cluster) limitedFrom(i int) (ip, mail string) {
	return fmt.Sprintf("127.240.0.%d", 1+i), fmt.Sprintf("limit-%d@example.com", i)
}

// Each of 100 addresses places as many orders as it can, on any replica.
func (c *cluster) limit(t *testing.T) {
	c.limited = time.Now()
	var got counts
	placed, refused, unsure := make([]atomic.Int64, limited), make([]atomic.Int64, limited), make([]atomic.Int64, limited)
	send := func(i int) {
		ip, mail := c.limitedFrom(i)
		a := c.ask(ip, "POST", "/orders", order(mail, 1))
		got.add("orders", a)
		switch a.status {
		case 201:
			placed[i].Add(1)
		case 429:
			refused[i].Add(1)
		default:
			unsure[i].Add(1) // Redis did not answer in time: it may have counted
		}
	}
	each(32, limited*(orderLimit+4), func(i int) { send(i % limited) })
	for i := range limited {
		for range 1000 {
			if refused[i].Load() > 0 {
				break
			}
			send(i)
		}
	}
	got.only(t, "orders", 201, 429, refusedByShop)
	for i := range limited {
		_, mail := c.limitedFrom(i)
		n, unsure := placed[i].Load(), unsure[i].Load()
		if n > orderLimit+1 || n < orderLimit-unsure || refused[i].Load() == 0 {
			t.Errorf("address %d: got got %d accepted orders, want %d; %d were refused, %d have an unknown outcome", i, n, orderLimit, refused[i].Load(), unsure)
		}
		if kept := c.db.orders(t, mail); int64(kept) != n {
			t.Errorf("address %d: got got %d stored orders, want the %d confirmed ones", i, kept, n)
		}
	}
	t.Log(&got)
}

// limitHolds fails the test if an address that has used its limit can still place an order.
func (c *cluster) limitHolds(t *testing.T) {
	t.Helper()
	each(16, limited, func(i int) {
		ip, mail := c.limitedFrom(i)
		a := c.ask(ip, "POST", "/orders", order(mail, 1))
		most := orderLimit + 1 + int(time.Since(c.limited)/(time.Hour/orderLimit)) // the limit recovers evenly
		if n := c.db.orders(t, mail); a.status == 201 && n > most {
			t.Errorf("address %d got %d orders, want at most %d", i, n, most)
		}
	})
}

// An order is placed once for each key, even if it is repeated. A different order with the same key is refused.
func (c *cluster) duplicates(t *testing.T) {
	const mail, key = "once@example.com", `"thousand-times"`
	var got counts
	var replayed atomic.Int64
	var mu sync.Mutex
	bodies := map[string]bool{}
	send := func(i int) int {
		a := c.ask(fmt.Sprintf("127.241.0.%d", 1+i%250), "POST", "/orders", order(mail, 2), "Idempotency-Key", key)
		got.add("orders", a)
		if a.status == 201 {
			mu.Lock()
			bodies[string(a.body)] = true
			mu.Unlock()
			if a.header.Get("Idempotent-Replayed") == "true" {
				replayed.Add(1)
			}
		}
		return a.status
	}
	each(32, 1000, func(i int) { send(i) })
	eventually(t, "the order is confirmed", func() bool { return send(0) == 201 })
	got.only(t, "orders", 201, 409, refusedByShop)
	if n := c.db.orders(t, mail); n != 1 || len(bodies) != 1 || replayed.Load() == 0 {
		t.Errorf("got %d placed orders and %d different answers, %d of them replayed; want one", n, len(bodies), replayed.Load())
	}
	for c.first = range bodies {
	}
	eventually(t, "another order with the key is refused", func() bool {
		a := c.ask("127.241.1.1", "POST", "/orders", order(mail, 3), "Idempotency-Key", key)
		if a.status != 422 && a.status != 503 {
			t.Fatalf("other order with the same key: got %v, want 422", a)
		}
		return a.status == 422
	})
	if n := c.db.orders(t, mail); n != 1 {
		t.Errorf("got %d orders", n)
	}
	t.Log(&got)
}

// 10,000 copies are put into 20 baskets, 64 at a time, on any replica.
func (c *cluster) baskets(t *testing.T) {
	const visits, updates = 20, 10_000
	line := OrderLine{Book: 1, Copies: 1}
	for range visits {
		eventually(t, "a basket is begun", func() bool {
			a := c.ask("", "POST", "/basket/lines", line)
			cookie, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
			if a.status == 200 {
				c.cookies = append(c.cookies, cookie)
			}
			return a.status == 200 && cookie != ""
		})
	}
	var got counts
	sure, unsure := make([]atomic.Int64, visits), make([]atomic.Int64, visits)
	each(64, updates, func(i int) {
		for range 1000 {
			a := c.ask("", "POST", "/basket/lines", line, "Cookie", c.cookies[i%visits])
			got.add("updates", a)
			if a.status == 200 {
				sure[i%visits].Add(1)
				return
			}
			unsure[i%visits].Add(1) // Redis did not answer in time: it may have been carried out
		}
	})
	got.only(t, "updates", 200, refusedByShop)
	c.copies = c.basketsNow(t)
	for i, copies := range c.copies {
		if least := 1 + sure[i].Load(); copies < least || copies > least+unsure[i].Load() || sure[i].Load() != updates/visits {
			t.Errorf("basket %d has %d copies: got %d were confirmed, %d are unknown", i, copies, least, unsure[i].Load())
		}
	}
	t.Log(&got)
}

// basketsNow returns how many copies each basket has, as soon as Redis answers.
func (c *cluster) basketsNow(t *testing.T) []int64 {
	t.Helper()
	var copies []int64
	for _, cookie := range c.cookies {
		eventually(t, "a basket is shown", func() bool {
			a := c.ask("", "GET", "/basket", nil, "Cookie", cookie)
			if a.status == 200 {
				copies = append(copies, copiesIn(t, a))
			} else if a.status != 503 {
				t.Fatalf("a basket: got %v", a)
			}
			return a.status == 200
		})
	}
	return copies
}

// settle repeats unconfirmed orders until they are confirmed, and fails the test for orders placed more than once. The outcome
// of orders on a dead replica is unknown: their answer is 409.
func (c *cluster) settle(t *testing.T, l *load, died bool) {
	t.Helper()
	again := 0
	for mail, a := range l.orders {
		if a.status != 201 {
			again++
			eventually(t, "the order of "+mail+" is confirmed", func() bool {
				a.answer = c.ask(a.ip, "POST", "/orders", order(mail, 1), "Idempotency-Key", mail)
				return a.status == 201 || died && a.status == 409
			})
			l.orders[mail] = a
		}
	}
	kept := c.db.allOrders(t)
	for mail, a := range l.orders {
		switch n := kept[mail]; {
		case a.status == 201 && n != 1, n > 1:
			t.Errorf("order of %s: got status %d and %d placed orders", mail, a.status, n)
		}
	}
	t.Logf("%v; %d sent again", &l.counts, again)
}

// rolls returns the number of rolling restarts: one, or the value of SHOP_ROLLING_RESTARTS.
func rolls(t *testing.T) int {
	text := os.Getenv("SHOP_ROLLING_RESTARTS")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("SHOP_ROLLING_RESTARTS is %q: it must be a number above 0", text)
	}
	return n
}

// The replicas are restarted one after the other, while visitors send requests.
func (c *cluster) rollingRestart(t *testing.T) {
	l := c.begin("rolling", 210)
	for n := range rolls(t) {
		for i, p := range c.replicas {
			p.stop(t, syscall.SIGTERM)
			if code := p.cmd.ProcessState.ExitCode(); code != 0 {
				t.Errorf("%s ended with %d", p.name, code)
			}
			c.startReplica(t, i)
			c.awaitUp(t)
		}
		if n%10 == 9 {
			t.Logf("%d times: %v", n+1, &l.counts)
		}
	}
	l.end()
	l.only(t, "books", 200)
	l.only(t, "orders", 201, refusedByShop) // only Redis may be late
	c.settle(t, l, false)
}

// A replica dies. Another replica answers its pending requests that may be repeated.
func (c *cluster) kill(t *testing.T) {
	l := c.begin("killed", 216)
	eventually(t, "visitors are served", func() bool { return l.confirmed() >= 10 })
	c.replicas[1].stop(t, syscall.SIGKILL)
	had := l.confirmed()
	eventually(t, "visitors are served by two", func() bool { return l.confirmed() >= had+10 })
	c.startReplica(t, 1)
	c.awaitUp(t)
	l.end()
	l.only(t, "books", 200)
	l.only(t, "orders", 201, 409, refusedByShop)
	c.settle(t, l, true)
}

// Redis stops for five seconds. Requests that do not need it are served, and the others are refused without a wait. Afterwards
// everything works again without intervention.
func (c *cluster) pause(t *testing.T) {
	l := c.begin("paused", 222)
	eventually(t, "visitors are served", func() bool { return l.confirmed() >= 10 })
	over := time.After(5 * time.Second)
	for _, p := range c.redis {
		p.signal(syscall.SIGSTOP)
	}
	for i := range c.replicas {
		eventually(t, "the circuit breaker of a replica opens", func() bool { return c.storeStats(t, i).Openings > 0 })
	}
	if a := c.ask("", "GET", "/basket", nil, "Cookie", c.cookies[0]); a.status != 503 {
		t.Errorf("basket: got %v, want 503", a)
	}
	if a := c.ask("127.243.0.1", "POST", "/orders", order("away@example.com", 1)); a.status != 503 {
		t.Errorf("order with a limit: got %v, want 503", a)
	}
	if a := c.ask("", "GET", "/books?limit=2", nil); a.status != 200 {
		t.Errorf("books: got %v, want 200", a)
	}
	<-over
	for _, p := range c.redis {
		p.signal(syscall.SIGCONT)
	}
	for i := range c.replicas {
		eventually(t, "the circuit breaker of a replica closes", func() bool { return !c.storeStats(t, i).Open })
	}
	l.end()
	l.only(t, "books", 200)
	l.only(t, "orders", 201, refusedByShop)
	c.settle(t, l, false)
	c.same(t)
}

// same fails the test if confirmed data is missing.
func (c *cluster) same(t *testing.T) {
	t.Helper()
	c.limitHolds(t)
	for i, copies := range c.basketsNow(t) {
		if copies != c.copies[i] {
			t.Errorf("basket %d: got %d copies, want %d", i, copies, c.copies[i])
		}
	}
	eventually(t, "the first order is answered again", func() bool {
		a := c.ask("127.241.1.2", "POST", "/orders", order("once@example.com", 2), "Idempotency-Key", `"thousand-times"`)
		if a.status != 503 && (a.status != 201 || string(a.body) != c.first) {
			t.Fatalf("first order: got %v, want %s", a, c.first)
		}
		return a.status == 201
	})
}

// The first master of Redis hands over to its replica, and dies.
func (c *cluster) failover(t *testing.T) {
	l := c.begin("failover", 228)
	eventually(t, "visitors are served", func() bool { return l.confirmed() >= 10 })
	tries := 0
	eventually(t, "the replica is the master", func() bool {
		if tries%300 == 0 { // Redis gives up after five seconds
			c.command(3, "CLUSTER FAILOVER")
		}
		tries++
		return strings.Contains(c.command(3, "INFO replication"), "role:master")
	})
	for _, i := range []int{1, 2} {
		eventually(t, "all masters know the change", func() bool {
			return strings.Contains(c.command(i, "CLUSTER NODES"), fmt.Sprintf("%s@%d master", c.redisAddr(3), c.port+10_000))
		})
	}
	c.redis[0].stop(t, syscall.SIGKILL)
	had := l.confirmed()
	eventually(t, "visitors are served", func() bool { return l.confirmed() >= had+20 })
	l.end()
	l.only(t, "books", 200)
	l.only(t, "orders", 201, refusedByShop)
	c.settle(t, l, false)
	c.same(t)
}

// confirmed returns how many orders were.
func (l *load) confirmed() int {
	l.counts.mu.Lock()
	defer l.counts.mu.Unlock()
	return l.n["orders"][201]
}

// openDatabase opens the database of the replicas, and adds a book with a large stock.
func (f *fleet) openDatabase(t *testing.T) *catalogue {
	t.Helper()
	db, err := open(f.database())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s := &catalogue{db}
	if b, err := s.add(t.Context(), BookData{ISBN: "9780000000003", Title: "Much", Author: "Many", Genre: "novel", Stock: 10_000_000}); err != nil || b.ID != 3 {
		t.Fatalf("a book: got %+v, %v", b, err)
	}
	return s
}

// orders returns the number of stored orders of an address.
func (s *catalogue) orders(t *testing.T, mail string) (n int) {
	t.Helper()
	if err := s.db.QueryRowContext(t.Context(), "select count(*) from orders where mail = ?", mail).Scan(&n); err != nil {
		t.Error(err)
	}
	return n
}

// allOrders returns the number of stored orders of each address.
func (s *catalogue) allOrders(t *testing.T) map[string]int {
	t.Helper()
	rows, err := s.db.QueryContext(t.Context(), "select mail, count(*) from orders group by mail")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[string]int{}
	for rows.Next() {
		var mail string
		var n int
		if err := rows.Scan(&mail, &n); err != nil {
			t.Fatal(err)
		}
		all[mail] = n
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
