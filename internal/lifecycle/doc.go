// Package lifecycle is how a service begins and ends: which sockets it listens on,
// inherited ones included, the order in which its servers stop, and the handover to a
// new process. It knows no HTTP and no engine: a [Server] is whatever answers what
// comes in by a listener.
//
// # The order of the end
//
//  1. [Servers.Unready]: health checks fail, balancers look elsewhere, for as long as the grace.
//  2. [Servers.Shutdown] has every server stop accepting: each empties the backlog of its
//     listener, whose clients take their connections for made, and closes it. On the loop engine
//     the last loop to let go of a listener does that, with net/http a lastListener
//     (internal/stdhttp).
//  3. The channel of [Servers.Draining] is closed, which ends event streams. From now on every answer
//     that begins closes its connection; for HTTP/2 a GOAWAY says so. The context of background workers
//     ends, too. It comes after step 2
//     because clients whose connections are closed make new ones.
//  4. All servers end. Each loop looks at its connections once: an idle one may send a
//     request for another 250 ms, is read a last time and closed. So is one that becomes idle later
//     without having been told, because its answer had begun before. A new one has 2 s for its first
//     request, which clients do not send again, after its handshake if it is by TLS. Each of these times is
//     at most half of what the drain may take. The server of net/http grants the same, the 2 s from the beginning and
//     with the handshake, and ends idle connections of HTTP/1.1 itself (internal/stdhttp/drain.go). Then it calls
//     http.Server.Shutdown, which sends the GOAWAYs: connections of HTTP/2 that are idle have theirs when no new connection
//     is waited for any more, after 2 s at most, others with their next answer.
//  5. At the deadline, what is left is closed. On the loop engine the goroutine that has
//     such a connection fails in its next read or write, and the request's context is cancelled.
//
// What remains is what HTTP/1.1 leaves to clients (RFC 9112, section 9.5): a request that is sent
// in the very moment in which its connection is closed after 250 ms of silence, 2 s for a new one; and, when no
// other process has the listener, a connection that is made between the last accept and the close.
//
// On net/http some more are lost. Where the listener has HTTP/2, by TLS or H2C: the first request of a new connection that
// comes after the 2 s, and a request on a connection that becomes idle after that because its answer had begun before the
// drain. (On other listeners the latter happens only after 2 s and Config.HeadTimeout, while some client has sent a part of a
// request.) And a request of which only a part came together with the one before, if the rest takes longer than 250 ms.
// On systems other than Linux a request that has arrived but was not read is lost with its connection.
//
// # The handover
//
// SIGHUP begins the end without the grace, once a new process serves. The program's file is started anew
// with duplicates of the listeners, in the protocol of systemd (LISTEN_FDS), and a pipe, to which
// the new process writes a byte once it serves. A program of the new process gets the listeners of its addresses, so that
// no app serves the address of another one; see places.go. Without that byte, within a minute, the new process
// is killed and the old one goes on. Both accept from the same sockets in between, so nothing
// is refused.
//
// # Where to look
//
//	servers.go   what runs, and stopping it     run.go      from the first listener to the last
//	process.go   what apps of a process share   workers.go  background workers
//	places.go    what is listened on            inherit_*   listeners of systemd, or of the process before
//	restart_*    the process after this one     notify.go   telling the service manager
//	ports.go     where TLS is to be found       listen_*    net.Listen, sooner on Linux
package lifecycle
