// Package lifecycle is how a service begins and ends: which sockets it listens on,
// inherited ones included, the order in which its servers stop, and the handover to a
// new process. It knows no HTTP and no engine: a [Server] is whatever answers what
// comes in by a listener.
//
// # The order of the end
//
//  1. [Servers.Unready]: health checks fail, balancers look elsewhere.
//  2. [Servers.Shutdown] has every server stop accepting, and only then marks the
//     drain: clients whose connections are closed make new ones.
//  3. The channel of [Servers.Draining] is closed; answers close their connections.
//  4. All servers end, until the deadline.
//
// # Where to look
//
//	servers.go   what runs, and stopping it     run.go      from the first listener to the last
//	places.go    what is listened on            inherit_*   listeners of systemd, or of the process before
//	restart_*    the process after this one     notify.go   telling the service manager
//	ports.go     where TLS is to be found       task.go     what runs beside servers
package lifecycle
