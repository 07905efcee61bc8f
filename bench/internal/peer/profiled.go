package peer

import (
	"fmt"
	"strings"

	"github.com/dunlinhttp/dunlin/bench/internal/proc"
)

// profileTag is the build tag that adds net/http/pprof to peers/service. examples/users always contains it.
const profileTag = "compareprofile"

// Profiled returns a copy of p whose server is built with profiling. It returns an error for peers that are not Go programs,
// because their profiles are not comparable.
func (p Peer) Profiled() (Peer, error) {
	if p.kind.tool != goProgram.tool {
		return p, fmt.Errorf("%s is written in %s: only Go programs can be profiled", p.Name, p.Language)
	}
	p.profiled = true
	return p, nil
}

// ProfileCommand returns the command that starts a server that was built with profiling. The server listens on addr. It serves its
// profiles on another address, which is returned as profiles.
func (b Built) ProfileCommand(addr, spare string, cores []int) (command proc.Command, profiles string, err error) {
	if command, err = b.Command(addr, cores); err != nil {
		return command, "", err
	}
	if strings.HasPrefix(b.source, "../") { // examples/users has a flag for the address of the profiles
		command.Args = append(command.Args, "-pprof", spare)
		return command, spare, nil
	}
	command.Env = []string{"COMPARE_PROFILE_ADDR=" + spare}
	return command, spare, nil
}
