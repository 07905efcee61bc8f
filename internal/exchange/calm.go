package exchange

import "reflect"

// calm is the code of middleware whose actions run no code of users but the action behind it, and panic by nothing
// else: around one, nobody need look for panics again that were looked for behind it.
var calm = map[uintptr]bool{}

// Calm notes that middleware made where this one is has such actions. It is for init functions.
func Calm(middleware any) { calm[reflect.ValueOf(middleware).Pointer()] = true }

// IsCalm reports whether middleware was made where one is that was noted.
func IsCalm(middleware any) bool { return calm[reflect.ValueOf(middleware).Pointer()] }
