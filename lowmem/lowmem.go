// Package lowmem reduces the memory of a process where memory is scarcer than CPU time.
package lowmem

// DropProgram removes the pages of the program's file from the memory of the process. Pages that are used again return
// from the system's cache, with a page fault per 16 KB. Pages used only during start-up, nearly half of them, stay out: 1 to
// 3 MB, and up to 7 MB in an idle process. Call it when the app has begun to serve. It takes some milliseconds and splits the
// program's mappings into some hundreds, of the 65,530 allowed by vm.max_map_count.
//
// It has an effect only on Linux. In a control group with a memory limit it is not useful, since the system drops such
// pages itself when it needs memory.
func DropProgram() { dropProgram() }
