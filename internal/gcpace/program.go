package gcpace

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// ProgramBytes returns how much of the process's resident memory is files it has
// mapped, which is the program itself and its libraries; 0 where that is unknown.
func ProgramBytes() int64 {
	text, err := fs.ReadFile(KernelFiles(), "proc/self/statm") // size resident shared ..., in pages
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 3 {
		return 0
	}
	shared, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return 0
	}
	return shared * int64(os.Getpagesize())
}
