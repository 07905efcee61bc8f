package router

// isVersion reports whether s is a version: v, a digit, then letters, digits, _ or -.
func isVersion(s string) bool {
	if len(s) < 2 || s[0] != 'v' || !isDigit(s[1]) {
		return false
	}
	for i := 2; i < len(s); i++ {
		if c := s[i]; !isAlpha(c) && !isDigit(c) && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
