//go:build linux

package runner

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
	"github.com/dunlinhttp/dunlin/bench/internal/scenario"
)

// A member is a peer that takes part in the run. Its responses were verified.
type member struct {
	peer.Built
	failed map[string]string
}

// shortBuild limits the total time for building peers in a short run. On a machine without a build cache, building would take
// longer than everything else. A peer that is not built in time is omitted.
const shortBuild = 80 * time.Second

// prepare builds and verifies every peer. It omits a peer that cannot be built or started, and reports its name to watch.
func prepare(ctx context.Context, env *scenario.Env, o Options, run *results.Run, watch Watcher) ([]member, error) {
	built, failures := buildAll(ctx, env, o.Peers, watch)
	var members []member
	for i, p := range o.Peers {
		m, err := member{Built: built[i]}, failures[i]
		if err == nil && ctx.Err() == nil {
			watch.Step(i, len(o.Peers), "check "+p.Name)
			m.failed, err = env.Verify(ctx, m.Built)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		record := results.Peer{Name: p.Name, Language: p.Language}
		if err != nil {
			record.Skipped = err.Error()
			watch.Skipped(p.Name, record.Skipped)
			run.Peers = append(run.Peers, record)
			continue
		}
		record.Version, record.Command = m.Version, m.Describe()
		if len(m.failed) > 0 {
			record.Failed = m.failed
			watch.Differs(p.Name, m.failed)
		}
		members = append(members, m)
		run.Peers = append(run.Peers, record)
	}
	return members, nil
}

// buildAll builds several peers at the same time. This disturbs no measurement, because none has begun, and it uses cores that
// compilers leave idle while they link. Peers with the same source are built one after the other.
func buildAll(ctx context.Context, env *scenario.Env, peers []peer.Peer, watch Watcher) ([]peer.Built, []error) {
	building := ctx
	if env.Short {
		limited, cancel := context.WithTimeout(ctx, shortBuild)
		defer cancel()
		building = limited
	}
	built, failures := make([]peer.Built, len(peers)), make([]error, len(peers))
	slots := make(chan struct{}, runtime.NumCPU())
	var working sync.WaitGroup
	for _, group := range bySource(peers) {
		slots <- struct{}{}
		watch.Step(group[0], len(peers), "build "+peers[group[0]].Name)
		working.Go(func() {
			defer func() { <-slots }()
			for _, i := range group {
				built[i], failures[i] = peer.Build(building, env.Folders, peers[i])
				if failures[i] != nil && errors.Is(building.Err(), context.DeadlineExceeded) {
					failures[i] = fmt.Errorf("not built within the %v of a short run; a second one finds more of it compiled", shortBuild)
				}
			}
		})
	}
	working.Wait()
	return built, failures
}

// bySource groups the indexes of peers that have the same source. The groups are in the order of the peers.
func bySource(peers []peer.Peer) [][]int {
	var groups [][]int
	at := map[string]int{}
	for i, p := range peers {
		g, seen := at[p.Source()]
		if !seen {
			g = len(groups)
			at[p.Source()] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	return groups
}
