package http1_test

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/http1"
)

// A reference implementation of Head.Parse, for comparison in the fuzz targets: the same rules written with regular expressions and
// strings.

// outcome is the outcome of an input. If status and n are 0, more input is needed.
type outcome struct {
	n      int
	status int
	head   string // describe(h) and the fields, if n > 0
}

var (
	tokenThenSpace = regexp.MustCompile("^([!#$%&'*+.^_`|~0-9A-Za-z-]+) ")
	tokenFirst     = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]")
	coding         = regexp.MustCompile("(?s)^([!#$%&'*+.^_`|~0-9a-z-]+)(?:[ \t]*;.*)?$")
	targetBytes    = regexp.MustCompile(`^[!-"$-~]*`)
	rpcLine        = regexp.MustCompile(`^CONNECT /[!-"$-~]* HTTP/1\.0\n$`)
	versionBytes   = regexp.MustCompile(`^HTTP/(\d)\.(\d)\r\n$`)
	fieldLine      = regexp.MustCompile("^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\\x00-\\x08\\x0a-\\x1f\\x7f]*)\r\n$")
	absoluteURI    = regexp.MustCompile(`(?i)^https?://([^/?]*)([^?]*)(?:\?(.*))?$`)
	badEscapes     = regexp.MustCompile(`%(?:[^0-9A-Fa-f]|[0-9A-Fa-f][^0-9A-Fa-f]|$|.$)`)
	nameAndPort    = regexp.MustCompile(`^(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+(?::(\d{0,5}))?$`)
	literalAndPort = regexp.MustCompile(`^\[([0-9a-fA-F:.]+)\](?::(\d{0,5}))?$`)
)

// slowParse is the reference implementation. It has the entire input, so it does not resume.
func slowParse(in string, lim http1.Limits) outcome {
	skip := 0
	if strings.HasPrefix(in, "\r\n") {
		skip = 2
	}
	if in == "" || in == "\r" || in == "\r\n" {
		return outcome{}
	}
	if !tokenFirst.MatchString(in[skip:]) {
		return outcome{status: 400}
	}
	longest := skip + 32 + 1 + lim.MaxTarget + 1 + len("HTTP/1.1\r\n")
	end := lineEnd(in, skip, min(longest, lim.MaxHead))
	if end == 0 {
		switch {
		case len(in) < min(longest, lim.MaxHead):
			return outcome{}
		case !strings.Contains(in[skip:min(skip+33, lim.MaxHead)], " "):
			return outcome{status: 501}
		}
		return outcome{status: 414}
	}
	h := slowHead{contentLength: -1}
	if line := in[skip:end]; rpcLine.MatchString(line) {
		status := h.requestLine(strings.TrimSuffix(line, "\n")+"\r\n", lim)
		switch {
		case status == 414 || len(in) == end && end == lim.MaxHead:
			return outcome{status: 414}
		case len(in) == end:
			return outcome{}
		case end >= lim.MaxHead:
			return outcome{status: 414}
		case in[end] != '\n':
			return outcome{status: 400}
		case status != 0:
			return outcome{status: status}
		}
		return outcome{n: end + 1, head: h.String()}
	}
	if status := h.requestLine(in[skip:end], lim); status != 0 {
		return outcome{status: status}
	}
	for {
		start := end
		end = lineEnd(in, start, lim.MaxHead)
		if end == 0 && len(in) >= lim.MaxHead {
			return outcome{status: 431}
		}
		if end == 0 {
			return outcome{}
		}
		line := in[start:end]
		if line == "\r\n" {
			break
		}
		m := fieldLine.FindStringSubmatch(line)
		if m == nil {
			return outcome{status: 400}
		}
		if len(h.fields) == lim.MaxFields {
			return outcome{status: 431}
		}
		value := strings.TrimRight(m[2], " \t")
		h.fields = append(h.fields, m[1]+"="+value)
		if status := h.field(strings.ToLower(m[1]), value); status != 0 {
			return outcome{status: status}
		}
	}
	if h.minor == 1 && !h.hasHost && h.form != " authority" {
		return outcome{status: 400}
	}
	return outcome{n: end, head: h.String()}
}

// lineEnd returns the end of the line that starts at start, if its LF is among the first limit bytes, and 0 otherwise.
func lineEnd(in string, start, limit int) int {
	if i := strings.IndexByte(in[start:], '\n'); i >= 0 && start+i < limit {
		return start + i + 1
	}
	return 0
}

// slowHead is the content of a head as strings.
type slowHead struct {
	method, path, query, host, form string
	minor                           int
	fields, connection              []string
	contentLength                   int64
	escaped, hasHost, hasUpgrade    bool
	chunked, expect                 bool
}

func (h *slowHead) requestLine(line string, lim http1.Limits) (status int) {
	m := tokenThenSpace.FindStringSubmatch(line)
	if m == nil {
		return 400
	}
	h.method = m[1]
	if len(h.method) > 32 {
		return 501
	}
	rest := line[len(m[0]):]
	target := targetBytes.FindString(rest)
	rest = rest[len(target):]
	if rest[0] != ' ' || target == "" {
		return 400
	}
	if len(target) > lim.MaxTarget {
		return 414
	}
	version := versionBytes.FindStringSubmatch(rest[1:])
	switch {
	case version == nil:
		return 400
	case version[1] != "1":
		return 505
	case version[2] != "0":
		h.minor = 1
	}
	if !h.target(target) {
		return 400
	}
	return 0
}

func (h *slowHead) target(target string) bool {
	switch {
	case h.method == "CONNECT" && target[0] != '/':
		h.form, h.host = " authority", target
		return slowAuthority(target) && regexp.MustCompile(`:\d+$`).MatchString(target)
	case target == "*":
		h.form, h.path = " asterisk", "*"
		return h.method == "OPTIONS"
	case target[0] == '/':
		h.path, h.query, _ = strings.Cut(target, "?")
	default:
		m := absoluteURI.FindStringSubmatch(target)
		if m == nil || !slowAuthority(m[1]) {
			return false
		}
		h.form, h.host, h.path, h.query = " absolute", m[1], m[2], m[3]
		if h.path == "" {
			h.path = "/"
		}
	}
	h.escaped = strings.Contains(h.path, "%")
	return !badEscapes.MatchString(h.path)
}

func slowAuthority(s string) bool {
	m := nameAndPort.FindStringSubmatch(s)
	port := ""
	if m != nil {
		port = m[1]
	} else if m = literalAndPort.FindStringSubmatch(s); m != nil {
		addr, err := netip.ParseAddr(m[1])
		if err != nil || !addr.Is6() {
			return false
		}
		port = m[2]
	}
	n, err := strconv.Atoi("0" + port)
	return m != nil && err == nil && n <= 65535
}

// field interprets a field that affects the request; name is in lower case.
func (h *slowHead) field(name, value string) (status int) {
	switch name {
	case "host":
		if h.hasHost || value != "" && !slowAuthority(value) {
			return 400
		}
		h.hasHost = true
		if h.form == "" || h.form == " asterisk" {
			h.host = value
		}
	case "content-length":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || h.chunked || h.contentLength >= 0 || strings.ContainsAny(value, "+-") {
			return 400
		}
		h.contentLength = n
	case "transfer-encoding":
		if h.minor == 0 || h.chunked || h.contentLength >= 0 {
			return 400
		}
		h.chunked = true
		return slowCoding(strings.ToLower(value))
	case "connection":
		for option := range strings.SplitSeq(strings.ToLower(value), ",") {
			h.connection = append(h.connection, strings.Trim(option, " \t"))
		}
	case "upgrade":
		h.hasUpgrade = true
	case "expect":
		for member := range strings.SplitSeq(strings.ToLower(value), ",") {
			switch strings.Trim(member, " \t") {
			case "":
			case "100-continue":
				h.expect = true
			default:
				return 417
			}
		}
	}
	return 0
}

func slowCoding(value string) (status int) {
	if value == "chunked" {
		return 0
	}
	var codings []string
	for c := range strings.SplitSeq(value, ",") {
		if c = strings.Trim(c, " \t"); c != "" {
			codings = append(codings, c)
		}
	}
	unknown := false
	for i, c := range codings {
		if c == "chunked" && i == len(codings)-1 {
			break
		}
		name := coding.FindStringSubmatch(c)
		if name == nil || name[1] == "chunked" { // not the last coding, or with a parameter
			return 400
		}
		unknown = true
	}
	if !unknown {
		return 400
	}
	return 501
}

// String returns the same text as describeAll of an equal Head.
func (h *slowHead) String() string {
	says := func(option string) bool {
		for _, o := range h.connection {
			if o == option {
				return true
			}
		}
		return false
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s path=%s", h.method, h.path)
	if h.query != "" {
		b.WriteString(" query=" + h.query)
	}
	b.WriteString(" host=" + h.host)
	if h.minor == 0 {
		b.WriteString(" 1.0")
	}
	b.WriteString(h.form)
	if h.escaped {
		b.WriteString(" escaped")
	}
	if h.contentLength >= 0 {
		fmt.Fprint(&b, " length=", h.contentLength)
	}
	if h.chunked {
		b.WriteString(" chunked")
	}
	if says("close") || h.minor == 0 && !says("keep-alive") {
		b.WriteString(" close")
	}
	if h.minor == 1 && h.expect && (h.chunked || h.contentLength > 0) {
		b.WriteString(" expect")
	}
	if h.minor == 1 && h.hasUpgrade && says("upgrade") {
		b.WriteString(" upgrade")
	}
	return b.String() + "\n" + strings.Join(h.fields, "\n")
}

// describeAll is describe with all fields.
func describeAll(h *http1.Head) string {
	var fields []string
	for i := range h.Len() {
		name, value := h.Field(i)
		fields = append(fields, string(name)+"="+string(value))
	}
	return describe(h) + "\n" + strings.Join(fields, "\n")
}
