package lifecycle

// UnclaimedFor points to unclaimedFor, so that tests can shorten it.
var UnclaimedFor = &unclaimedFor
