package http1

import "testing"

// If plain returns 0 for a head, the state machine gives the same result more slowly. No other test would notice this.
func TestOrdinaryHeadsArePlain(t *testing.T) {
	lim := DefaultLimits()
	for _, head := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /users/42?expand=groups HTTP/1.1\r\nhost: localhost:8080\r\nAccept: */*\r\n\r\n",
		"POST /echo HTTP/1.1\r\nContent-Length: 5\r\nHost: api.example.com\r\n\r\n",
		"PROPFIND /a_b HTTP/1.1\r\nHost: [::1]:8080\r\nTransfer-Encoding: chunked\r\n\r\n",
	} {
		var h Head
		if n := h.plain([]byte(head+"more"), &lim); n != len(head) {
			t.Errorf("plain: got 0 for %q", head)
		}
	}
	for _, head := range []string{
		"GET / HTTP/1.0\r\nHost: a\r\n\r\n",
		"GET /%41 HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n",
		"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		var h Head
		if n := h.plain([]byte(head), &lim); n != 0 {
			t.Errorf("plain: got a head for %q, want 0", head)
		}
	}
}
