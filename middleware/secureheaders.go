package middleware

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// SecurityConfig holds the headers that tell browsers what to keep pages from. A field that is "-"
// leaves its header out.
type SecurityConfig struct {
	// HSTS is how long browsers are to use TLS only (Strict-Transport-Security, RFC 6797), in whole seconds.
	// It is sent by TLS alone, see [dunlin.Request.Secure]. A browser that has seen it does not come in clear
	// text until it has passed: begin with a few minutes. Negative: 0 is sent, which ends it. Default: not
	// sent.
	HSTS time.Duration

	// HSTSSubdomains extends HSTS to all hosts below this one. HSTSPreload asks to be built
	// into browsers (hstspreload.org): it needs HSTSSubdomains and a year, and is hard to take back.
	HSTSSubdomains, HSTSPreload bool

	ContentSecurityPolicy string // default: not said
	PermissionsPolicy     string // default: not said
	FrameOptions          string // X-Frame-Options; default: DENY
	ReferrerPolicy        string // default: strict-origin-when-cross-origin
	OpenerPolicy          string // Cross-Origin-Opener-Policy; default: same-origin
	ResourcePolicy        string // Cross-Origin-Resource-Policy; default: same-origin
	EmbedderPolicy        string // Cross-Origin-Embedder-Policy; default: not said
	ContentTypeOptions    string // X-Content-Type-Options; default: nosniff
}

// SecureHeaders adds the headers of c to responses, except those that the action has set.
//
// Most apps want them on every answer, errors included: [SendSecureHeaders] does that. The
// middleware is for groups that want others; what it adds the policy leaves.
// SecureHeaders panics when a setting is not valid.
func SecureHeaders(c SecurityConfig) dunlin.Middleware {
	s := new(secureHeaders)
	s.clear, s.secure = c.render("SecureHeaders")
	return s.around
}

// secureHeaders are what SecureHeaders adds, in clear text and by TLS.
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

// SendSecureHeaders is the policy that adds the headers of c to every answer of the app, also those
// that no middleware sees:
//
//	app.Policy(middleware.SendSecureHeaders(middleware.SecurityConfig{HSTS: 365 * 24 * time.Hour}))
func SendSecureHeaders(c SecurityConfig) dunlin.Policy {
	clear, secure := c.render("SendSecureHeaders")
	return func(info *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
		block := clear
		if secure != clear && info.Secure() {
			block = secure
		}
		return resp.DefaultHeaders(block)
	}
}

// render makes the headers of answers in clear text and by TLS.
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
		panic(fmt.Sprintf("middleware: %s: FrameOptions is %q: it must be DENY or SAMEORIGIN; what else may frame a page is said by ContentSecurityPolicy (frame-ancestors)", who, c.FrameOptions))
	case (c.HSTSSubdomains || c.HSTSPreload) && c.HSTS == 0:
		panic("middleware: " + who + ": HSTSSubdomains and HSTSPreload say nothing without HSTS")
	case c.HSTSPreload && (!c.HSTSSubdomains || c.HSTS < 365*24*time.Hour):
		panic(fmt.Sprintf("middleware: %s: HSTSPreload needs HSTSSubdomains and an HSTS of a year, not %v: lists of browsers do not take others", who, c.HSTS))
	case c.HSTS > 0 && c.HSTS < time.Second:
		panic(fmt.Sprintf("middleware: %s: HSTS is %v: it counts whole seconds", who, c.HSTS))
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
