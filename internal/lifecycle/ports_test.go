package lifecycle_test

import (
	"testing"

	"github.com/dunlinhttp/dunlin/internal/lifecycle"
)

// Where hosts have certificates, no request is redirected to another host.
func TestSecureHostOfDomains(t *testing.T) {
	var ports lifecycle.Ports
	domains := []string{"shop.example", "*.cdn.example"}
	for host, want := range map[string]string{
		"shop.example": "shop.example", "SHOP.example": "SHOP.example", "shop.example:80": "shop.example", "shop.example.": "shop.example.",
		"a.cdn.example": "a.cdn.example", "cdn.example": "", "a.b.cdn.example": "", "evil.example": "", "shop.example.evil.example": "",
		"evil.example:80": "", "127.0.0.1": "", "[::1]": "", "shop.example@evil.example": "", "": "", ".cdn.example": "", ":80": "",
	} {
		if got := ports.SecureHost(host, domains); got != want {
			t.Errorf("%q: got %q, want %q", host, got, want)
		}
	}
	for host, want := range map[string]string{"any.example": "any.example", "[::1]:80": "[::1]", "any.example/x": "", "a,b": ""} {
		if got := ports.SecureHost(host, nil); got != want {
			t.Errorf("%q without domains: got %q, want %q", host, got, want)
		}
	}
}
