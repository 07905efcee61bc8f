package suite

import (
	"slices"

	"github.com/dunlinhttp/dunlin"
)

// exceptions lists the tests and cases that do not run on some adapters, with reasons.
var exceptions = []struct {
	reason string
	on     func(Adapter) bool
	what   []string
}{
	{"net/http sends the type that the body would have", func(a Adapter) bool { return a.H2 && a.Engine == dunlin.EngineStd }, []string{
		"304 of a response with a body",
	}},
	{"by HTTP/2 the connection continues after a late action", byH2, []string{"TestTimeoutRespondsWhileActionRuns"}},
	{"the gateway does not know a request's trailers before it has passed on its head", byH2, []string{"TestStd"}},
	{"it is about connections, and the gateway has its own", behindGateway, []string{
		"TestProxyProtocol", "TestProxyProtocolRefused", "TestProxyProtocolFromUntrustedPeer", "TestProxyProtocolPerAddress", "TestProxyProtocolDrain",
		"TestMaxConnections", "TestIdleConnectionsAreEvicted", "TestMaxConnectionsPerAddress", "TestAcceptPausesAreReported", "TestMaxRequestsPerConnection", "TestLastResponseBeforeCloseIsComplete", "TestMaxHeaders",
		"TestContextLocalAddr", "TestTCPKeepAlive", "TestH2C", "TestH2CIsOffByDefault", "TestSSEEnds", "TestProxyTruncatesResponse",
	}},
	{"it is about TLS", behindGateway, []string{
		"TestTLS", "TestTLSBesideClearText", "TestContextEndsWithCloseNotify", "TestTLSHandshakeErrorsAreQuiet", "TestTLSDevelopment", "TestTLSIssuer",
		"TestSecureOnly", "TestSecureOnlyRefusesClearText",
	}},
	{"it is about how HTTP/1.1 is read, which the gateway does", behindGateway, []string{
		"TestParityRefused", "TestInputsAcceptedByNetHTTP", "TestRefusalsAreObserved", "TestUpgradeToHTTP2IsIgnored", "TestTunnelIsNotParsedAsHTTP", "TestParityContinue", "TestParityContinueUnread", "TestStdContinue",
	}},
	{"it is about clients that send half a body, or end their direction, and get an answer", behindGateway, []string{
		"TestBrokenBodies", "TestStdWriter", "TestStdHeaders", "TestStdPastWriteDeadline",
	}},
	{"it hijacks the connection", behindGateway, []string{
		"TestStdHijack", "TestTimeoutClearsDeadline", "TestFailingHandlersInsideMiddleware", "TestUpgradeHeadIsSentBeforeHijack", "TestStatusIsSentBeforeHijack",
		"TestMountConnect", "TestWriterFailsAfterHandlerReturns", "TestDrainWaitsForHijacked", "TestDrainWaitsForHijackedInsideMiddleware",
	}},
	{"it is about clients that are slow, or do not read", behindGateway, []string{
		"TestActionSeesSlowBody", "TestBodyTimeout", "TestBodyTimeoutEnds", "TestBodyTimeoutUnread", "TestBodyTimeoutEndsUnread", "TestLongestTimeouts",
		"TestWriteTimeout", "TestMinBodyRate", "TestMinBodyRateExcludesWaitingForAction", "TestLoggerBlocks", "TestConstraintBlocks", "TestStreamToClosedConnection",
		"TestStdReadDeadline", "TestStdDeadlineWakes", "TestStdReadDeadlinePutOff", "TestStdReadDeadlineAndDuplex", "TestStreamsCut", "TestTimeoutKeepsStartedResponse", "TestSSEHeartbeat",
	}},
	{"it is about the memory that connections hold", behindGateway, []string{
		"TestBodyLargerThanBudgetIs413", "TestBodyWaitsForMemory", "TestBodyWithoutMemoryIs503", "TestLargestHolderIsEvictedForBody", "TestSlowClientsDoNotDelayOthers", "TestSlowBodiesAreReported", "TestLargeBodiesInUseLeaveRoomForSmallRequests",
		"TestHangupWhileBodyWaits", "TestMemoryRefusalsRunPolicies", "TestMaxMemoryPerConnection", "TestMaxMemoryPerAddress", "TestMaxMemoryPerAddressOfResponses",
		"TestGrowingBodiesDoNotDeadlock", "TestLargeBodiesOfOneConnectionTakeTurns", "TestEndOfWaitingChunkedBody", "TestFilesMemory", "TestStreamsMemory", "TestHugeFile", "TestFileShrinks",
	}},
	{"it speaks HTTP/2 itself", behindGateway, []string{
		"TestUnreadStreams", "TestStreamsInFlight", "TestQuietStreams", "TestStreamBodies", "TestWithHeaders", "TestDateOfAnswer", "TestWhiteSpaceAroundValues", "TestInvalidHostByHTTP2",
		"TestMaxStreamsPerConnection",
	}},
	{"it loads the machine, and says nothing about adapters that their engines do not", behindGateway, []string{
		"TestMessagesOrder",
	}},
	{"an adapter in memory counts nothing", func(a Adapter) bool { return a.Memory }, []string{
		"TestClientGone", "TestRouteStatsCountOutcomes", "TestRouteStatsOfBlockingActions", "TestRouteStatsAfterGoexit",
		"TestRouteStatsOfPipelinedRequests", "TestRouteStatsPolicy", "TestStatsWhileServing", "TestRewrittenPathsInLog",
		"TestBodyInPiecesIsChargedOnce",
	}},
}

func byH2(a Adapter) bool { return a.H2 }

func behindGateway(a Adapter) bool { return a.Memory || a.H2 }

// Excepted reports whether a test or a case does not run on an adapter, and why.
func Excepted(a Adapter, what string) (reason string, excepted bool) {
	for _, e := range exceptions {
		if e.on(a) && slices.Contains(e.what, what) {
			return e.reason, true
		}
	}
	return "", false
}
