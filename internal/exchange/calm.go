package exchange

import "reflect"

// calm has the code pointers of middleware that runs no user code except the wrapped action and has no panics of its own. Code
// around such middleware need not recover panics again if the wrapped action's are recovered.
var calm = map[uintptr]bool{}

// Calm registers the code of a middleware function as calm. It is for init functions.
func Calm(middleware any) { calm[reflect.ValueOf(middleware).Pointer()] = true }

// IsCalm reports whether a function with the same code as middleware is registered.
func IsCalm(middleware any) bool { return calm[reflect.ValueOf(middleware).Pointer()] }
