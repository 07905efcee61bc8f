package files

import "golang.org/x/sys/windows"

// badNames are the errors of Windows for an invalid name: an element below a file, or a name that is too long or
// malformed.
var badNames = []windows.Errno{windows.ERROR_DIRECTORY, windows.ERROR_FILENAME_EXCED_RANGE, windows.ERROR_INVALID_NAME, windows.ERROR_BAD_PATHNAME}
