// Package lifecycle starts and ends a service: its listeners, including inherited ones,
// the order of shutdown of its servers, and the handover to a new process. It does not
// depend on HTTP or an engine: a [Server] is anything that serves the connections of a
// listener.
//
// # The order of shutdown
//
//  1. [Servers.Unready]: health checks fail, so that load balancers choose other servers. This takes the grace time.
//  2. [Servers.Shutdown] makes every server stop accepting. Each server accepts the connections in the backlog
//     of its listener, which are established for their clients, and closes it. On the loop engine,
//     the last loop to release a listener empties its backlog and closes it. With net/http, lastListener
//     (internal/stdhttp) does this.
//  3. The channel of [Servers.Draining] is closed, which ends event streams. From now on every answer
//     that begins closes its connection; for HTTP/2 a GOAWAY announces this. The context of background workers
//     ends, too. This step follows step 2
//     because clients open new connections when theirs are closed.
//  4. All servers end. Each loop checks its connections once: an idle connection may send a
//     request for another 250 ms, is read a last time and closed. A connection that becomes idle later gets
//     the same time if its response began before step 3, because that response did not carry
//     Connection: close. A new connection has 2 s for its first
//     request, because clients do not repeat it; with TLS the time starts after the handshake. Each of these times is
//     at most half of the drain timeout. The server of net/http grants the same times, but its 2 s include
//     the handshake. It ends idle connections of HTTP/1.1 itself (internal/stdhttp/drain.go). Then it calls
//     http.Server.Shutdown, which sends GOAWAY. An idle HTTP/2 connection gets it when the wait for new
//     connections ends, after at most 2 s. A busy one gets it with its next response.
//  5. At the deadline the remaining connections are closed. On the loop engine the goroutine that owns
//     such a connection fails in its next read or write, and the request's context is cancelled.
//
// Some losses cannot be avoided in HTTP/1.1; clients must handle them (RFC 9112, section 9.5): a request that is sent
// at the moment in which its connection is closed after 250 ms of silence, or 2 s for a new one; and, if no
// other process has the listener, a connection that is made between the last accept and the close.
//
// With net/http, these requests are lost too:
//
//   - On a listener with HTTP/2, over TLS or H2C: the first request of a new connection after the 2 s.
//   - On such a listener: a request on a connection that becomes idle after the 2 s because its response began before the
//     drain. On other listeners this happens only after 2 s and Config.Timeouts.Head, while another client has sent a part
//     of a request.
//   - A request that arrived in part together with the previous one, if the rest takes longer than 250 ms.
//   - On systems other than Linux, a request that has arrived but was not read.
//
// # The handover
//
// SIGHUP starts the shutdown without the grace time, once a new process serves. The old process starts the program's file
// with duplicates of the listeners, by the protocol of systemd (LISTEN_FDS), and a pipe. The new process writes
// a byte to the pipe once it serves. An app in the new process gets only the listeners of its own addresses;
// see endpoints.go. Without that byte within a minute, the old process kills the new one and continues.
// During the handover both accept from the same sockets, so no connection
// is refused.
//
// # Where to look
//
//	servers.go   running servers, shutdown          run.go      from the first listener to the last
//	process.go   state shared by a process's apps   workers.go  background workers
//	endpoints.go    addresses and their listeners      inherit_*   listeners of systemd or of the previous process
//	restart_*    the next process                   notify.go   reports to the service manager
//	ports.go     ports in clear text and with TLS   listen_*    net.Listen, faster on Linux
package lifecycle
