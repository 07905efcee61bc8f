package topic_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/dunlinhttp/dunlin/topic"
)

// A client whose connection breaks at random positions, and that resumes, gets each message once.
func TestCutsLoseAndDoubleNothing(t *testing.T) {
	onEngines(t, topic.Settings{MaxMessages: 1 << 20, MaxBytes: 1 << 30}, func(t *testing.T, hub *topic.Hub, open func() *socket) {
		const messages, clients = 3000, 4
		starts := make(chan struct{}, clients)
		var wg sync.WaitGroup
		for n := range clients {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(uint64(n), 2))
				last, next, cuts := "-", 0, 0
				for next < messages {
					s := open()
					s.say("!subscribe %s a b", last)
					for left := random.IntN(200); next < messages; left-- {
						text, err := s.next()
						if err != nil {
							t.Error(err)
							return
						}
						head, data, isMessage := strings.Cut(text, "\n")
						if !isMessage {
							id, ok := strings.CutPrefix(head, "!at ")
							if !ok {
								t.Errorf("got %q", text)
								return
							}
							if last == "-" {
								starts <- struct{}{}
							}
							last = id
							continue
						}
						if left < 0 {
							break // the connection breaks, and this message is lost
						}
						if data != strconv.Itoa(next) {
							t.Errorf("got %q, want message %d, after %d cuts", text, next, cuts)
							return
						}
						last, _, _ = strings.Cut(head, " ")
						next++
					}
					cuts++
					_ = s.Close()
				}
			})
		}
		go func() {
			for range clients {
				<-starts
			}
			for i := range messages {
				if err := hub.Topic(string('a' + rune(i%2))).Publish([]byte(strconv.Itoa(i))); err != nil {
					t.Error(err)
				}
			}
		}()
		wg.Wait()
	})
}
