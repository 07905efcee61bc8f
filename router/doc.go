// Package router finds the route for a method, a host and a path. It is generic in what it stores,
// knows nothing of HTTP servers and can be used alone.
package router
