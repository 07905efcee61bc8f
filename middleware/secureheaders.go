package middleware

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
)

// SecureHeadersConfig has the headers that restrict browsers. The value "-" of a field omits its header.
type SecureHeadersConfig struct {
	// HSTS is the time for which browsers use only TLS (Strict-Transport-Security, RFC 6797), in whole seconds. The header is sent
	// only over TLS, see [dunlin.Request.Secure]. A browser does not use clear text again before this time has passed: begin with a
	// few minutes. A negative value sends 0, which ends the time. Default: not sent.
	HSTS time.Duration

	// HSTSSubdomains extends HSTS to all hosts below this host. HSTSPreload requests inclusion in the
	// preload lists of browsers (hstspreload.org). It requires HSTSSubdomains and an HSTS of at least a
	// year, and is hard to reverse.
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

// SecureHeaders adds the headers of c to all answers. It does not change a header that the action or an inner feature
// has set.
//
//	app.Install(middleware.SecureHeaders(middleware.SecureHeadersConfig{HSTS: 365 * 24 * time.Hour}))
//
// SecureHeaders panics for an invalid setting.
func SecureHeaders(c SecureHeadersConfig) dunlin.Feature {
	s := new(secureHeaders)
	s.clear, s.secure = c.render()
	return edgeParts{secure: s}.feature(s.send)
}

// secureHeaders has the headers for clear text and for TLS.
type secureHeaders struct {
	clear, secure *dunlin.HeaderBlock
	joints
}

func (s *secureHeaders) block(r *dunlin.Request) *dunlin.HeaderBlock {
	if s.secure != s.clear && r.Secure() {
		return s.secure
	}
	return s.clear
}

// send adds the headers to an answer.
func (s *secureHeaders) send(info *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
	if s.secure != s.clear && info.Secure() {
		return ext.DefaultHeaders(resp, s.secure)
	}
	return ext.DefaultHeaders(resp, s.clear)
}

// render returns the headers for clear text and for TLS.
func (c SecureHeadersConfig) render() (clear, secure *dunlin.HeaderBlock) {
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
		panic(fmt.Sprintf("middleware: SecureHeaders: FrameOptions is %q: it must be DENY or SAMEORIGIN; for other rules set ContentSecurityPolicy (frame-ancestors)", c.FrameOptions))
	case (c.HSTSSubdomains || c.HSTSPreload) && c.HSTS == 0:
		panic("middleware: SecureHeaders: HSTSSubdomains and HSTSPreload have no effect without HSTS")
	case c.HSTSPreload && (!c.HSTSSubdomains || c.HSTS < 365*24*time.Hour):
		panic(fmt.Sprintf("middleware: SecureHeaders: HSTSPreload needs HSTSSubdomains and an HSTS of a year, not %v: browsers' preload lists refuse others", c.HSTS))
	case c.HSTS > 0 && c.HSTS < time.Second:
		panic(fmt.Sprintf("middleware: SecureHeaders: HSTS is %v: it must be in whole seconds", c.HSTS))
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
