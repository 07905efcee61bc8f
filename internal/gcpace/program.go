package gcpace

import (
	"os"
	"strconv"
	"strings"
)

// ProgramBytes returns the resident size of the files mapped into the process: the program and its libraries. It is 0
// if unknown.
func ProgramBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm") // size resident shared ..., in pages
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
