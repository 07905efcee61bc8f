package exchange

import "reflect"

// calm is where the code of actions is that do not panic but by what they lead on to, of which the pipeline
// knows already: it need not look for that again.
var calm = map[uintptr]bool{}

// Calm notes that actions made where this one is do not panic themselves. It is for init functions.
func Calm(action any) { calm[reflect.ValueOf(action).Pointer()] = true }

// IsCalm reports whether an action was made where one is that was noted.
func IsCalm(action any) bool { return calm[reflect.ValueOf(action).Pointer()] }
