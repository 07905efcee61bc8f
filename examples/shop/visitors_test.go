//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// visitors are clients of the fleet.
type visitors struct {
	f      *fleet
	anyone http.Client
}

func newVisitors(t *testing.T, f *fleet) *visitors {
	v := &visitors{f: f, anyone: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: patience}}
	t.Cleanup(v.anyone.CloseIdleConnections)
	return v
}

// from returns a client at a loopback address, "" for any.
func (v *visitors) from(ip string) *http.Client {
	if ip == "" {
		return &v.anyone
	}
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	return &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}, Timeout: patience}
}

// An answer is the result of a visitor's request, with status 0 for no answer.
type answer struct {
	status int
	body   []byte
	header http.Header
	err    error
}

func (a answer) String() string { return fmt.Sprintf("%d %s %v", a.status, a.body, a.err) }

// ask sends a request. Headers are alternating names and values.
func (v *visitors) ask(ip, method, path string, body any, headers ...string) answer {
	var src io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return answer{err: err}
		}
		src = bytes.NewReader(text)
	}
	req, err := http.NewRequest(method, "http://"+v.f.front+path, src)
	if err != nil {
		return answer{err: err}
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := v.from(ip).Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, text, resp.Header, err}
}

// order is an order of one book.
func order(mail string, copies int64) any {
	var in PlaceOrder
	in.Body.Mail, in.Body.Lines = mail, []OrderLine{{Book: 3, Copies: copies}}
	return in.Body
}

// copiesIn returns how many copies a basket has.
func copiesIn(t *testing.T, a answer) int64 {
	t.Helper()
	var b Basket
	if err := json.Unmarshal(a.body, &b); err != nil || a.status != http.StatusOK {
		t.Fatalf("a basket: got %v", a)
	}
	return b.Copies
}

// refusedByShop is the status in counts of a 503 problem that a replica sends because Redis does not answer. A balancer
// without a replica sends a different 503.
const refusedByShop = -503

// counts has the number of answers by name of the request and status. Status 0 means no answer.
type counts struct {
	mu sync.Mutex
	n  map[string]map[int]int
	an map[string]string // an example of each
}

func (c *counts) add(name string, a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n, c.an = map[string]map[int]int{}, map[string]string{}
	}
	if c.n[name] == nil {
		c.n[name] = map[int]int{}
	}
	status := a.status
	switch {
	case a.err != nil:
		status = 0
	case status == 503 && bytes.Contains(a.body, []byte(`"status":503`)):
		status = refusedByShop
	}
	c.n[name][status]++
	c.an[fmt.Sprint(name, " ", status)] = a.String()
}

// only fails the test if an answer has another status.
func (c *counts) only(t *testing.T, name string, statuses ...int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for status, n := range c.n[name] {
		if !slices.Contains(statuses, status) {
			t.Errorf("got %d answers of %s with status %d (0: no answer), want only %v; example: %.300s", n, name, status, statuses, c.an[fmt.Sprint(name, " ", status)])
		}
	}
}

func (c *counts) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := ""
	for _, name := range slices.Sorted(maps.Keys(c.n)) {
		s += fmt.Sprint(name, " ", c.n[name], " ")
	}
	return s
}

// each runs f for all numbers below n, some at a time.
func each(workers, n int, f func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	all.Wait()
}

// A load is a number of visitors who view books and place orders, each with a key, until the load is stopped. A visitor
// pauses between two requests, so the load is bounded. Their addresses are 127.series and five more.
type load struct {
	counts
	done   chan struct{}
	all    sync.WaitGroup
	mu     sync.Mutex
	orders map[string]placed // placed orders by mail, which is also the key
}

// placed is an order of a load.
type placed struct {
	ip string
	answer
}

const loadWorkers = 6

func (v *visitors) begin(name string, series int) *load {
	l := &load{done: make(chan struct{}), orders: map[string]placed{}}
	for worker := range loadWorkers {
		l.all.Go(func() {
			pause := time.NewTicker(10 * time.Millisecond)
			defer pause.Stop()
			for n := 0; ; n++ {
				select {
				case <-l.done:
					return
				case <-pause.C:
				}
				if n%4 == 0 {
					mail := fmt.Sprintf("%s-%d-%d@example.com", name, worker, n)
					ip := fmt.Sprintf("127.%d.%d.%d", series+worker, n/4/250, 1+n/4%250) // each visitor has its own address, since addresses have limits
					a := v.ask(ip, "POST", "/orders", order(mail, 1), "Idempotency-Key", mail)
					l.add("orders", a)
					l.mu.Lock()
					l.orders[mail] = placed{ip, a}
					l.mu.Unlock()
				} else {
					l.add("books", v.ask("", "GET", "/books?limit=2", nil))
				}
			}
		})
	}
	return l
}

func (l *load) end() {
	close(l.done)
	l.all.Wait()
}
