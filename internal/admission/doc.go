// Package admission decides what a server takes on: how much memory it may hold,
// and for what. It knows neither connections nor HTTP.
//
//	budget.go     how much of it is held, for what
//	kept.go       what of it is the first to go: caches
//	holders.go    by whom
//	account.go    one of them
//	room.go       who gets room, waits for it or has it made
//	beside.go     memory of a request beside its body
//	line.go       in which order large bodies have it
//	probe.go      who begins without it, since probably little comes of it
//	victims.go    who makes room when there is none
//	caps.go       what one connection or address may hold, whatever room there is
//	shed.go       what was refused, by reason
//	freelist.go   what is kept for later, and how much of it
//	addresses.go  how much each remote address has open
//	descriptors_*.go how many connections may be open by default
//	keys.go       how much each key of a limit has in flight
//	keycount.go   counting by key, for these two
package admission
