//go:build linux

package looph2

import (
	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// submit runs an action on a worker. It reads the body while it arrives.
func (s *session) submit(own *stream) {
	x := s.h.wireOf(s.d)
	x.use(s.d, own, &own.req, nil)
	urgent := false
	if x.find() {
		own.route, urgent = x.State.Route, x.State.Route.Critical
		if s.d.Overdue() && !urgent {
			own.intake.on(refuse)
			s.shed(own, x)
			return
		}
	}
	wait := own.route != nil && s.mustWaitInBacklog(own, own.route)
	x.Call.End()
	s.mu.Lock()
	own.intake.on(streamBody)
	b := &own.flows().in
	b.unread.set(own.here)
	own.here = nil
	b.credited = b.unread.len
	b.asked = !own.req.Expect100 || b.unread.len > 0
	own.holdInput()
	s.mu.Unlock()
	if wait {
		s.putOff(own)
		return
	}
	s.enqueue(own, urgent)
}

// enqueue queues a stream's job for a worker.
func (s *session) enqueue(own *stream, urgent bool) {
	s.awaitWorker(own, enqueue)
	s.d.SubmitPart((*job)(own), urgent)
}

// awaitWorker records that the action of a stream waits, in the backlog or for a worker.
func (s *session) awaitWorker(own *stream, e actionEvent) {
	own.kept.Store(true)
	s.mu.Lock()
	own.action.on(e)
	own.holdInput()
	s.mu.Unlock()
}

// A job is a stream whose action runs on a worker.
type job stream

// Prepare creates the wire of a worker.
func (j *job) Prepare(d *engine.Driver) {
	d.PartScratch = &scratch{wire: j.s.h.newWire()}
}

// Run runs the job. The steps before and after the action are functions of their own: see engine/workers.go.
func (j *job) Run(d *engine.Driver) {
	if x := j.begin(d); x != nil {
		x.endJob(d, x.Call.Run())
	}
}

// Abandoned answers for an action that did not return.
func (j *job) Abandoned(d *engine.Driver) {
	if x := scratchOf(d).wire; x != nil && x.runs == acting {
		x.giveUpOn()
	}
}

// endJob sends the answer of a job's action.
//
//go:noinline
func (x *Wire) endJob(d *engine.Driver, a exchange.Answer) {
	x.acted(&a)
	if x.runs == leaving {
		scratchOf(d).wire = nil
		x.goToBackground(a)
		return
	}
	x.runs = away
	x.deliverAnswer(&a)
}

// begin does the steps before the action. It returns nil if the action is not to run.
//
//go:noinline
func (j *job) begin(d *engine.Driver) *Wire {
	own := (*stream)(j)
	s := own.s
	if !own.dequeue() {
		return nil
	}
	whole := own.here
	if own.intake == streamed {
		whole = nil
	}
	x := s.h.wireOf(d)
	x.use(d, own, &own.req, whole)
	x.runs = away
	if x.since = own.begun; x.since == 0 {
		x.since = d.Now()
	}
	if r := own.refusal; r != nil {
		x.setState()
		x.Call.Begin(own.req.Status == 0)
		if r.route != nil {
			x.State.Route = r.route
		}
		a := r.answer
		x.guarded(func() {
			a = x.Call.Decorate(a, r.source)
			x.observe(&a)
		})
		x.deliverAnswer(&a)
		return nil
	}
	if !x.find() {
		x.guarded(func() { x.Call.FindCarefully(view.String(x.req.Authority())) })
	}
	own.route = x.State.Route
	x.countInFlight(&x.State.Route.Counts)
	x.startTimeout()
	x.runs = acting
	return x
}

// dequeue begins the job. It is false if the job is not needed any more.
func (own *stream) dequeue() bool {
	own.s.mu.Lock()
	defer own.s.mu.Unlock()
	if own.answer.canceled() {
		own.action.on(end)
		own.s.notify(own)
		return false
	}
	own.action.on(start)
	if own.intake != streamed {
		own.setWorking(true)
	}
	return true
}

// Overdue refuses the request, which was queued for too long.
func (j *job) Overdue() {
	go func() {
		own := (*stream)(j)
		s := own.s
		if !own.dequeue() {
			return
		}
		s.h.server.Shed.Add(admission.QueueTime)
		a := s.h.late
		x := s.h.newWire()
		x.use(nil, own, &own.req, nil)
		x.since, x.runs = own.begun, away
		if !x.find() {
			x.Call.Begin(true)
		}
		x.guarded(func() {
			a = x.Call.Decorate(a, exchange.FromOverload)
			x.observe(&a)
		})
		x.deliverAnswer(&a)
	}()
}
