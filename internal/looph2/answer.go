//go:build linux

package looph2

import "github.com/dunlinhttp/dunlin/internal/request"

// An answer is the state of the answer of an action: see the package's documentation. Guarded by session.mu.
type answer uint8

const (
	none answer = iota
	begun
	finished
	sent
	aborted
	unwanted
	cut
)

type answerEvent uint8

const (
	begin answerEvent = iota
	finish
	send
	abort
	cancel
	answerEvents
)

var answers = [...][answerEvents]answer{
	none:     {begin: begun, abort: aborted, cancel: unwanted},
	begun:    {finish: finished, abort: aborted, cancel: cut},
	finished: {send: sent, abort: finished, cancel: cut},
	sent:     {abort: sent, cancel: cut},
	aborted:  {abort: aborted, cancel: cut},
	unwanted: {begin: cut, abort: unwanted, cancel: unwanted},
	cut:      {finish: cut, abort: cut, cancel: cut},
}

// on makes the transition of an event.
func (a *answer) on(e answerEvent) { *a = request.Next(*a, answers[*a][e], e) }

// started reports whether a streamed answer has begun.
func (a answer) started() bool { return a != none && a != unwanted }

// canceled reports whether nobody waits for the answer any more.
func (a answer) canceled() bool { return a >= unwanted }
