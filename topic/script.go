package topic

import _ "embed"

// Script is the JavaScript client for browsers, an ES module without dependencies: it subscribes over a WebSocket whose messages go
// to [Hub.Handle], reconnects with growing random delays, and resumes. Its first lines describe its use. Serve it as
// text/javascript.
//
//go:embed client.js
var Script string
