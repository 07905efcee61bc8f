// Package lowmem reduces the memory of a process where memory is scarcer than CPU time.
package lowmem

// DropProgram removes the pages of the program's file from the memory of the process. When the program uses such a page
// again, the kernel maps it again from its cache, with one page fault for each 16 KB. Nearly half of the pages are used only
// during start-up. They stay removed, which saves 1 to 3 MB, and up to 7 MB in an idle process. Call DropProgram when the app
// has begun to serve. It takes some milliseconds and splits the program's mappings into some hundreds; vm.max_map_count
// allows 65,530.
//
// It has an effect only on Linux. In a control group with a memory limit it is not useful, since the kernel drops such
// pages itself when it needs memory.
func DropProgram() { dropProgram() }
