package lifecycle

// UnclaimedFor is unclaimedFor, which tests shorten.
var UnclaimedFor = &unclaimedFor
