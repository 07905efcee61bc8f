package dunlin

// engineStats fills in what the event loops know.
func (a *App) engineStats(s *Stats) {
	e := a.loop.serving.Load()
	if e == nil {
		return // no listener is served by it
	}
	from := e.Stats()
	s.Connections.Open += from.Conns
	s.Connections.PerLoop = from.ConnsPerLoop
	s.Connections.Accepted += from.Accepts
	s.Connections.AcceptPauses += from.AcceptPauses
	s.Connections.AcceptPaused = max(s.Connections.AcceptPaused, from.AcceptPaused)
	s.Actions = ActionStats{
		Away:     from.Away,
		Working:  from.WorkersBusy,
		Most:     from.WorkersMost,
		Queued:   from.JobsQueued,
		LoopWait: from.LoopWait, LoopWaitMost: from.LoopWaitMost,
		QueueWait: from.QueueWait, QueueWaitMost: from.QueueWaitMost,
		Takeovers: from.Takeovers,
	}
	s.Memory.ReadPaused = from.PendingConns
}
