package peer

import (
	"fmt"
	"strings"

	"github.com/dunlinhttp/dunlin/bench/internal/proc"
)

// profileTag builds peers/service with net/http/pprof, which examples/users always has.
const profileTag = "compareprofile"

// Profiled returns the peer with the build for profiles. Only Go programs have comparable profiles.
func (p Peer) Profiled() (Peer, error) {
	if p.kind.tool != goProgram.tool {
		return p, fmt.Errorf("%s is written in %s: only Go programs can be profiled", p.Name, p.Language)
	}
	p.profiled = true
	return p, nil
}

// ProfileCommand returns the command that starts a server, built for profiles, on addr. The server publishes its profiles on
// another address, spare, and profiles is the address it uses.
func (b Built) ProfileCommand(addr, spare string, cores []int) (command proc.Command, profiles string, err error) {
	if command, err = b.Command(addr, cores); err != nil {
		return command, "", err
	}
	if strings.HasPrefix(b.source, "../") { // examples/users
		command.Args = append(command.Args, "-pprof", spare)
		return command, spare, nil
	}
	command.Env = []string{"COMPARE_PROFILE_ADDR=" + spare}
	return command, spare, nil
}
