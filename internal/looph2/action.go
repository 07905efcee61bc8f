//go:build linux

package looph2

import "github.com/dunlinhttp/dunlin/internal/request"

// An action is the state of the action of a stream: see the package's documentation. Guarded by session.mu.
type action uint8

const (
	idle action = iota
	postponed
	queued
	running
	answering
	late
	lateAnswered
	lateReturned
	returned
	freed
)

type actionEvent uint8

const (
	postpone actionEvent = iota
	enqueue
	start
	decide
	expire
	answerLate
	end
	free
	actionEvents
)

var actions = [...][actionEvents]action{
	idle:         {postpone: postponed, enqueue: queued, start: running, end: returned, free: freed},
	postponed:    {enqueue: queued, end: returned, free: freed},
	queued:       {start: running, end: returned},
	running:      {postpone: postponed, enqueue: queued, decide: answering, expire: late, end: returned},
	answering:    {decide: answering, end: returned},
	late:         {decide: late, answerLate: lateAnswered, end: lateReturned},
	lateAnswered: {decide: lateAnswered, end: returned},
	lateReturned: {answerLate: returned},
	returned:     {free: freed},
	freed:        {},
}

// on makes the transition of an event.
func (a *action) on(e actionEvent) { *a = request.Next(*a, actions[*a][e], e) }

// waits reports whether the action has not begun, but will.
func (a action) waits() bool { return a == postponed || a == queued }

// isLate reports whether a late answer replaces that of the action, until both are there.
func (a action) isLate() bool { return late <= a && a <= lateReturned }

// underWay reports whether the action waits or runs, or a late answer is made in its place.
func (a action) underWay() bool { return idle < a && a < returned }
