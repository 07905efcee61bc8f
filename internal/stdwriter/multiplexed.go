package stdwriter

import (
	"io"
	"net/http"
	"time"
)

// For returns the ResponseWriter to use for a request of the given major version of HTTP.
func (w *Writer) For(major int) http.ResponseWriter {
	if major >= 2 {
		return (*multiplexed)(w)
	}
	return w
}

// A multiplexed is the Writer of an HTTP/2 stream. It is not an http.Hijacker, because its connection has other streams.
// Libraries check this to detect whether a WebSocket is possible, as with net/http.
type multiplexed Writer

func (m *multiplexed) Header() http.Header                   { return (*Writer)(m).Header() }
func (m *multiplexed) WriteHeader(status int)                { (*Writer)(m).WriteHeader(status) }
func (m *multiplexed) Write(p []byte) (int, error)           { return (*Writer)(m).Write(p) }
func (m *multiplexed) WriteString(s string) (int, error)     { return (*Writer)(m).WriteString(s) }
func (m *multiplexed) ReadFrom(src io.Reader) (int64, error) { return (*Writer)(m).ReadFrom(src) }
func (m *multiplexed) Flush()                                { (*Writer)(m).Flush() }
func (m *multiplexed) FlushError() error                     { return (*Writer)(m).FlushError() }
func (m *multiplexed) CloseNotify() <-chan bool              { return (*Writer)(m).CloseNotify() }
func (m *multiplexed) SetReadDeadline(t time.Time) error     { return (*Writer)(m).SetReadDeadline(t) }
func (m *multiplexed) SetWriteDeadline(t time.Time) error    { return (*Writer)(m).SetWriteDeadline(t) }
func (m *multiplexed) EnableFullDuplex() error               { return (*Writer)(m).EnableFullDuplex() }
