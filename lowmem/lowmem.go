// Package lowmem makes a process smaller where memory is scarcer than anything else.
package lowmem

// DropProgram takes the program's own file out of the memory of the process. Pages that are used again come back from the
// system's cache, at a page fault for every 16 KB; those that only starting has used, nearly half, stay away: 1 to 3 MB, and up to
// 7 MB of a process that is idle. Call it when the app has begun to serve. It takes some milliseconds, and splits the program's
// mappings into some hundreds, of the 65,530 in vm.max_map_count.
//
// It only has an effect on Linux. In a control group with a memory limit it is of no use: there the system drops such pages
// when it needs memory.
func DropProgram() { dropProgram() }
