package suite

import (
	"bufio"
	"net"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// At MaxConnections idle HTTP/2 connections are evicted for new ones.
func TestIdleHTTP2ConnectionsAreEvicted(t *testing.T) {
	_, addr, _ := StartLoop(t, dunlin.Config{Limits: dunlin.Limits{MaxConnections: 2}, H2C: dunlin.H2CPriorKnowledge}, func(*dunlin.App) {})
	for range 3 {
		if _, body := Get(t, Client(t, nil, H2C), "http://"+addr+"/probe"); body != "probe" {
			t.Errorf("got %q", body)
		}
	}
}

// Without idle connections, connections with incomplete requests are evicted.
func TestSlowConnectionsAreEvicted(t *testing.T) {
	for what, half := range map[string]string{
		"head": "GET /probe HT",
		"body": "POST /probe HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc",
	} {
		t.Run(what, func(t *testing.T) {
			// One action may begin with an incomplete body. Connections of such actions are not evicted.
			limits := dunlin.Limits{MaxConnections: 4, MaxConcurrent: 3}
			_, addr, _ := StartLoop(t, dunlin.Config{Limits: limits}, func(a *dunlin.App) {
				a.Post("/probe", Text("probe"))
			})
			answers := make(chan string, 4)
			for range 4 {
				conn := Dial(t, addr)
				Send(t, conn, half)
				go func(conn net.Conn) {
					got, _ := bufio.NewReader(conn).ReadString('\n')
					answers <- got
				}(conn)
			}
			probe(t, Dial(t, addr))
			first := <-answers
			// An action that does not read its body may have answered before.
			early := what == "body" && strings.HasPrefix(first, "HTTP/1.1 200")
			if !early && !strings.HasPrefix(first, "HTTP/1.1 408") {
				t.Errorf("got %q, want 408", first)
			}
		})
	}
}
