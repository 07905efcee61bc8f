package topic

import _ "embed"

// Script is the JavaScript client for browsers, an ES module without dependencies. It subscribes over a WebSocket whose messages
// the server passes to [Hub.Handle]. It reconnects with increasing random delays, and resumes. The first lines of the script
// describe its use. Serve it as text/javascript.
//
//go:embed client.js
var Script string
