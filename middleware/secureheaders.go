package middleware

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
)

// SecurityConfig has the headers that restrict browsers. A field "-" omits its header.
type SecurityConfig struct {
	// HSTS is how long browsers use only TLS (Strict-Transport-Security, RFC 6797), in whole
	// seconds. The header is sent only over TLS, see [dunlin.Request.Secure]. A browser cannot
	// return to clear text before this time has passed: begin with a few minutes. A negative value
	// sends 0, which ends it. Default: not sent.
	HSTS time.Duration

	// HSTSSubdomains extends HSTS to all hosts below this one. HSTSPreload requests inclusion in
	// the lists of browsers (hstspreload.org). It requires HSTSSubdomains and a year, and is hard
	// to reverse.
	HSTSSubdomains, HSTSPreload bool

	ContentSecurityPolicy string // default: not sent
	PermissionsPolicy     string // default: not sent
	FrameOptions          string // X-Frame-Options; default: DENY
	ReferrerPolicy        string // default: strict-origin-when-cross-origin
	OpenerPolicy          string // Cross-Origin-Opener-Policy; default: same-origin
	ResourcePolicy        string // Cross-Origin-Resource-Policy; default: same-origin
	EmbedderPolicy        string // default: not sent
	ContentTypeOptions    string // X-Content-Type-Options; default: nosniff
}

// SecureHeaders adds the headers of c to responses. A header that the action has set is not
// changed.
//
// Most apps need them on every response, errors included: use [SendSecureHeaders]. The middleware
// is for groups with different headers; the policy does not change these. SecureHeaders panics when
// a setting is not valid.
func SecureHeaders(c SecurityConfig) dunlin.Middleware {
	s := new(secureHeaders)
	s.clear, s.secure = c.render("SecureHeaders")
	return s.around
}

// secureHeaders has the headers for clear text and for TLS.
type secureHeaders struct {
	clear, secure *dunlin.HeaderBlock
	joints
}

func (s *secureHeaders) around(next dunlin.Action) dunlin.Action {
	return around(next, edgeParts{secure: s})
}

func (s *secureHeaders) block(r *dunlin.Request) *dunlin.HeaderBlock {
	if s.secure != s.clear && r.Secure() {
		return s.secure
	}
	return s.clear
}

// SendSecureHeaders returns the policy that adds the headers of c to every response of the app,
// including those that no middleware sees:
//
//	app.Policy(middleware.SendSecureHeaders(middleware.SecurityConfig{HSTS: 365 * 24 * time.Hour}))
func SendSecureHeaders(c SecurityConfig) dunlin.Policy {
	clear, secure := c.render("SendSecureHeaders")
	return func(info *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
		block := clear
		if secure != clear && info.Secure() {
			block = secure
		}
		return ext.DefaultHeaders(resp, block)
	}
}

// render returns the headers for clear text and for TLS.
func (c SecurityConfig) render(who string) (clear, secure *dunlin.HeaderBlock) {
	var pairs []string
	add := func(name, value, byDefault string) {
		if value == "" {
			value = byDefault
		}
		if value != "" && value != "-" {
			pairs = append(pairs, name, value)
		}
	}
	add("X-Content-Type-Options", c.ContentTypeOptions, "nosniff")
	add("X-Frame-Options", c.FrameOptions, "DENY")
	add("Referrer-Policy", c.ReferrerPolicy, "strict-origin-when-cross-origin")
	add("Cross-Origin-Opener-Policy", c.OpenerPolicy, "same-origin")
	add("Cross-Origin-Resource-Policy", c.ResourcePolicy, "same-origin")
	add("Cross-Origin-Embedder-Policy", c.EmbedderPolicy, "")
	add("Content-Security-Policy", c.ContentSecurityPolicy, "")
	add("Permissions-Policy", c.PermissionsPolicy, "")
	switch frame := strings.ToUpper(c.FrameOptions); {
	case frame != "" && frame != "-" && frame != "DENY" && frame != "SAMEORIGIN":
		panic(fmt.Sprintf("middleware: %s: FrameOptions is %q: it must be DENY or SAMEORIGIN; for other rules set ContentSecurityPolicy (frame-ancestors)", who, c.FrameOptions))
	case (c.HSTSSubdomains || c.HSTSPreload) && c.HSTS == 0:
		panic("middleware: " + who + ": HSTSSubdomains and HSTSPreload have no effect without HSTS")
	case c.HSTSPreload && (!c.HSTSSubdomains || c.HSTS < 365*24*time.Hour):
		panic(fmt.Sprintf("middleware: %s: HSTSPreload needs HSTSSubdomains and an HSTS of a year, not %v: browsers' preload lists refuse others", who, c.HSTS))
	case c.HSTS > 0 && c.HSTS < time.Second:
		panic(fmt.Sprintf("middleware: %s: HSTS is %v: it must be in whole seconds", who, c.HSTS))
	}
	clear = dunlin.NewHeaderBlock(pairs...)
	if c.HSTS == 0 {
		return clear, clear
	}
	hsts := "max-age=" + strconv.FormatInt(max(int64(c.HSTS/time.Second), 0), 10)
	if c.HSTSSubdomains {
		hsts += "; includeSubDomains"
	}
	if c.HSTSPreload {
		hsts += "; preload"
	}
	return clear, dunlin.NewHeaderBlock(append(pairs[:len(pairs):len(pairs)], "Strict-Transport-Security", hsts)...)
}
