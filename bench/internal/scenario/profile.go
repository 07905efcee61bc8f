//go:build linux

package scenario

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/proc"
)

// Profiles has the profiles of a server under the load of a scenario.
type Profiles struct {
	// CPU is the profile of the CPU time during Env.Duration.
	CPU *profile.Profile
	// Allocs has the allocations during Requests requests. It has all of them, or a sample according to
	// Scenario.SampledEvery.
	Allocs   *profile.Profile
	Requests int64
	// Heap is the live heap during the same load, after a garbage collection, with the same sampling.
	Heap *profile.Profile
}

// Profile starts the server twice. The server must be built with profiling. The first run measures the CPU time with the
// normal sampling of allocations. The second run records every allocation, or those that SampledEvery selects. This takes so
// much time that it would distort the CPU profile.
func (e *Env) Profile(ctx context.Context, s Scenario, p peer.Built) (Profiles, error) {
	var got Profiles
	if err := s.Profilable(p.Peer); err != nil {
		return got, err
	}
	err := e.profiled(ctx, s, p, nil, func(server *profiledServer) (err error) {
		got.CPU, err = server.cpu(ctx, e.Duration)
		return err
	})
	if err != nil {
		return got, fmt.Errorf("CPU profile of %s: %w", p.Name, err)
	}
	err = e.profiled(ctx, s, p, []string{fmt.Sprintf("GODEBUG=memprofilerate=%d", s.SampledEvery())}, func(server *profiledServer) (err error) {
		got.Allocs, got.Heap, got.Requests, err = server.memory(ctx, e.Duration)
		return err
	})
	if err != nil {
		return got, fmt.Errorf("heap and allocation profiles of %s: %w", p.Name, err)
	}
	return got, nil
}

// SampledEvery returns the average number of allocated bytes for each allocation that a profile of the heap or of allocations
// records. 1 means that every allocation is recorded.
func (s Scenario) SampledEvery() int { return max(s.sampledEvery, 1) }

// Profilable returns the reason why a peer cannot be profiled under the load of a scenario. It returns nil if the peer can be
// profiled.
func (s Scenario) Profilable(p peer.Peer) error {
	switch {
	case s.load == nil:
		return fmt.Errorf("%s has no steady load to take profiles under", s.Name)
	case !s.Takes(p, nil):
		return fmt.Errorf("%s does not take part in %s", p.Name, s.Name)
	}
	_, err := p.Profiled()
	return err
}

// A profiledServer is a server that serves its profiles.
type profiledServer struct {
	*server
	profiles string
	begin    func(d time.Duration) (*proc.Process, error) // starts the load for a duration
}

func (e *Env) profiled(ctx context.Context, s Scenario, p peer.Built, env []string, take func(*profiledServer) error) error {
	serverCores, loadCores := s.cores(e)
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	spare, err := freeAddr()
	if err != nil {
		return err
	}
	command, profiles, err := p.ProfileCommand(addr, spare, serverCores)
	if err != nil {
		return err
	}
	command.Env = append(command.Env, env...)
	command.Args = append(command.Args, e.backend.args(p.Peer)...)
	process, err := proc.Start(ctx, command)
	if err != nil {
		return err
	}
	defer process.Stop()
	running := &server{process, addr, p.TLS, p.H2}
	if err := e.answers(ctx, running); err != nil {
		return err
	}
	if err := e.warm(ctx, *s.load, running, loadCores); err != nil {
		return err
	}
	return take(&profiledServer{running, profiles, func(d time.Duration) (*proc.Process, error) {
		w := *s.load
		w.TLS = p.TLS
		return proc.Start(ctx, w.Command(e.Folders.Bench, addr, loadCores, d))
	}})
}

// profileMargin is the time by which the load runs longer than the profile.
const profileMargin = time.Second

func (s *profiledServer) cpu(ctx context.Context, d time.Duration) (*profile.Profile, error) {
	seconds := max(1, int(d.Round(time.Second)/time.Second)) // a server accepts only whole seconds
	loading, err := s.begin(time.Duration(seconds)*time.Second + profileMargin)
	if err != nil {
		return nil, err
	}
	defer loading.Stop()
	return s.get(ctx, fmt.Sprintf("profile?seconds=%d", seconds))
}

func (s *profiledServer) memory(ctx context.Context, d time.Duration) (allocs, heap *profile.Profile, requests int64, err error) {
	before, err := s.heap(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	loading, err := s.begin(d)
	if err != nil {
		return nil, nil, 0, err
	}
	defer loading.Stop()
	if err := pause(ctx, d/2); err != nil {
		return nil, nil, 0, err
	}
	if heap, err = s.heap(ctx); err != nil {
		return nil, nil, 0, err
	}
	if err := loading.Wait(); err != nil {
		return nil, nil, 0, err
	}
	loaded, err := load.ParseWrk(loading.Output())
	if err != nil {
		return nil, nil, 0, err
	}
	after, err := s.heap(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	before.Scale(-1)
	allocs, err = profile.Merge([]*profile.Profile{after, before})
	return allocs, heap, loaded.Requests, err
}

// heap returns the profile of the heap, which also has all allocations. The profile describes the heap at the last but one
// garbage collection. Therefore heap starts two collections.
func (s *profiledServer) heap(ctx context.Context) (*profile.Profile, error) {
	if _, err := s.get(ctx, "heap?gc=1"); err != nil {
		return nil, err
	}
	return s.get(ctx, "heap?gc=1")
}

func (s *profiledServer) get(ctx context.Context, what string) (*profile.Profile, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.profiles+"/debug/pprof/"+what, nil)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(answer.Body, 200))
		return nil, fmt.Errorf("%s: status %d: %s", what, answer.StatusCode, said)
	}
	p, err := profile.Parse(answer.Body)
	if err == nil {
		p.Sample = slices.DeleteFunc(p.Sample, ofProfiling)
	}
	return p, err
}

// ofProfiling reports whether a sample was caused by the profiling itself.
func ofProfiling(s *profile.Sample) bool {
	for _, location := range s.Location {
		for _, line := range location.Line {
			if line.Function != nil && (strings.HasPrefix(line.Function.Name, "net/http/pprof.") ||
				strings.HasPrefix(line.Function.Name, "runtime/pprof.")) {
				return true
			}
		}
	}
	return false
}
