package hpack

// staticEntries is the static table (RFC 7541 appendix A). Index 0 is unused.
var staticEntries = [...]struct{ name, value string }{
	1: {":authority", ""}, {":method", "GET"}, {":method", "POST"}, {":path", "/"},
	{":path", "/index.html"}, {":scheme", "http"}, {":scheme", "https"}, {":status", "200"},
	{":status", "204"}, {":status", "206"}, {":status", "304"}, {":status", "400"},
	{":status", "404"}, {":status", "500"}, {"accept-charset", ""},
	{"accept-encoding", "gzip, deflate"}, {"accept-language", ""}, {"accept-ranges", ""},
	{"accept", ""}, {"access-control-allow-origin", ""}, {"age", ""}, {"allow", ""},
	{"authorization", ""}, {"cache-control", ""}, {"content-disposition", ""},
	{"content-encoding", ""}, {"content-language", ""}, {"content-length", ""},
	{"content-location", ""}, {"content-range", ""}, {"content-type", ""}, {"cookie", ""},
	{"date", ""}, {"etag", ""}, {"expect", ""}, {"expires", ""}, {"from", ""}, {"host", ""},
	{"if-match", ""}, {"if-modified-since", ""}, {"if-none-match", ""}, {"if-range", ""},
	{"if-unmodified-since", ""}, {"last-modified", ""}, {"link", ""}, {"location", ""},
	{"max-forwards", ""}, {"proxy-authenticate", ""}, {"proxy-authorization", ""}, {"range", ""},
	{"referer", ""}, {"refresh", ""}, {"retry-after", ""}, {"server", ""}, {"set-cookie", ""},
	{"strict-transport-security", ""}, {"transfer-encoding", ""}, {"user-agent", ""}, {"vary", ""},
	{"via", ""}, {"www-authenticate", ""},
}

const (
	lastStatic = len(staticEntries) - 1 // 61

	// Entries to which the encoder refers by number.
	status200     = 8
	contentLength = 28

	// lastStaticValue is the last entry that has a value.
	lastStaticValue = 16
)

// A Name identifies the name of a field. It is the index of the first entry of the static table with this name. Fields with
// equal Names have equal names, except that 0 represents all names that are not in the static table.
type Name uint8

// The Names that an HTTP server uses.
const (
	Authority     Name = 1
	Method        Name = 2
	Path          Name = 4
	Scheme        Name = 6
	Status        Name = 8
	ContentLength Name = contentLength
	ContentType   Name = 31
	Cookie        Name = 32
	Date          Name = 33
	Expect        Name = 35
	Host          Name = 38
	SetCookie     Name = 55
)

var (
	// staticText contains the names and values of the static table. Spans of lists refer to it.
	staticText []byte
	// staticFields contains the entries of the static table as fields of a list.
	staticFields [lastStatic + 1]field
	// names maps nameHash of a name to the Name. The hash is perfect for the names of the static table.
	names [128]uint8
	// lower maps ASCII letters to lower case, and other bytes to themselves.
	lower [256]byte
)

// init fills these tables. As results of functions they would need a larger stack, which the runtime would have to copy at
// each start of a program.
func init() {
	staticText = make([]byte, 0, 1<<10)
	for i := 1; i <= lastStatic; i++ {
		e := &staticEntries[i]
		f := &staticFields[i]
		f.index = uint8(i)
		if before := &staticFields[i-1]; i > 1 && staticEntries[i-1].name == e.name {
			f.name, f.index = before.name, before.index
		} else {
			f.name = addStatic(e.name)
			names[nameHash(e.name)] = uint8(i)
		}
		f.value = addStatic(e.value)
	}
	for c := range lower {
		lower[c] = byte(c)
		if c >= 'A' && c <= 'Z' {
			lower[c] += 'a' - 'A'
		}
	}
}

func addStatic(s string) span {
	start := uint32(len(staticText))
	staticText = append(staticText, s...)
	return span{start | inStatic, uint32(len(staticText))}
}

// nameHash returns a hash of a name, which must not be empty. It ignores case. The factors were found by search, so that the
// hash is perfect.
func nameHash(name string) uint8 {
	n := len(name)
	return (uint8(n)*105 + (name[0]|0x20)*115 + (name[n-1]|0x20)*49 + (name[n/2]|0x20)*110) & 127
}

// NameOf returns the Name of a name in upper or lower case.
func NameOf(name string) Name {
	if name == "" {
		return 0
	}
	i := names[nameHash(name)]
	if i == 0 || !equalFold(staticEntries[i].name, name) {
		return 0
	}
	return Name(i)
}

// equalFold reports whether b equals a without regard to case. a must be in lower case.
func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if a[i] != lower[b[i]] {
			return false
		}
	}
	return true
}
