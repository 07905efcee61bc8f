package suite

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// A chunked body arrives unchanged, and the next request is answered, for any division into chunks and reads.
func TestChunkedBodyShapes(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/probe", Text("probe"))
			app.HandleStd("POST", "/{buffer:int}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var size int
				_, _ = fmt.Sscan(r.PathValue("buffer"), &size)
				sum, total, buf := crc32.NewIEEE(), 0, make([]byte, size)
				for {
					n, err := r.Body.Read(buf)
					_, _ = sum.Write(buf[:n])
					if total += n; err != nil {
						_, _ = fmt.Fprintf(w, "%d %08x %v %s", total, sum.Sum32(), err, r.Trailer.Get("X-Sum"))
						return
					}
				}
			}))
		})
		rng := rand.New(rand.NewPCG(1, 2))
		data := make([]byte, 150_000) // more than is gathered before the handler begins
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		for _, most := range []int{200, 6000, 100_000} {
			for _, buffer := range []int{500, 5000, 32 << 10} {
				var sent bytes.Buffer
				for rest := data; len(rest) > 0; {
					n := min(1+rng.IntN(most), len(rest))
					fmt.Fprintf(&sent, "%x\r\n%s\r\n", n, rest[:n])
					rest = rest[n:]
				}
				sent.WriteString("0\r\nX-Sum: 7\r\n\r\n")
				want := fmt.Sprintf("%d %08x %v 7", len(data), crc32.ChecksumIEEE(data), io.EOF)
				if adapterOf(t).H2 { // whose gateway does not know the trailer before it has passed on the head
					want = want[:len(want)-1]
				}
				request := fmt.Sprintf("POST /%d HTTP/1.1\r\nHost: h.example\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n", buffer)
				answers := Exchange(t, addr, false, request+sent.String())
				if got := answers[0]; !bytes.HasSuffix([]byte(got), []byte("\n\n"+want)) {
					t.Errorf("chunks of up to %d bytes, read %d at a time: got %q, want %q", most, buffer, got, want)
				}
			}
		}
	})
}
