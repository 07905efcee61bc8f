package exchange

import "reflect"

// panicFree has the code pointers of middleware that runs no user code except the wrapped action and has no panics of its own. Code
// around such middleware need not recover panics again if the wrapped action's are recovered.
var panicFree = map[uintptr]bool{}

// PanicFree registers the code of a middleware function as panicFree. It is for init functions.
func PanicFree(middleware any) { panicFree[reflect.ValueOf(middleware).Pointer()] = true }

// IsPanicFree reports whether a function with the same code as middleware is registered.
func IsPanicFree(middleware any) bool { return panicFree[reflect.ValueOf(middleware).Pointer()] }
