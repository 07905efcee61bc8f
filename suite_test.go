package dunlin_test

import "github.com/dunlinhttp/dunlin/internal/suite"

// These are helpers of internal/suite under the names that the tests of this package use. Tests of an engine with connections
// are in internal/suite and in the packages of the adapters.
var (
	do, doBody           = suite.Do, suite.DoBody
	respond, respondWith = suite.Respond, suite.RespondWith
	constant, text       = suite.Constant, suite.Text

	panicText               = suite.PanicText
	wantContains, wantLacks = suite.WantContains, suite.WantLacks
	wantLogged              = suite.WantLogged

	newApp, start   = suite.NewApp, suite.Start
	onEnginesAndTLS = suite.OnBothEnginesAndTLS
	dial, send      = suite.Dial, suite.Send
	soon            = suite.Soon

	req, exchangeRaw     = suite.Request, suite.Exchange
	readAnswer, answered = suite.ReadAnswer, suite.Answered
)

type logBuffer = suite.LogBuffer

const patience = suite.Patience
