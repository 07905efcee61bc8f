package files

import "golang.org/x/sys/windows"

// badNames is what Windows says of a name that no file can have: it goes on below a
// file, is too long or malformed.
var badNames = []windows.Errno{windows.ERROR_DIRECTORY, windows.ERROR_FILENAME_EXCED_RANGE, windows.ERROR_INVALID_NAME, windows.ERROR_BAD_PATHNAME}
