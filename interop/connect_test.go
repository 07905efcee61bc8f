package interop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dunlinhttp/dunlin"
)

// The procedures of a service without generated code.
const (
	upper  = "/test.v1.Text/Upper"
	count  = "/test.v1.Text/Count"
	gather = "/test.v1.Text/Gather"
	wait   = "/test.v1.Text/Wait"
)

type (
	text   = wrapperspb.StringValue
	number = wrapperspb.Int32Value
)

func connectService(cancelled chan<- struct{}) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(upper, connect.NewUnaryHandler(upper, func(_ context.Context, r *connect.Request[text]) (*connect.Response[text], error) {
		if r.Msg.Value == "" {
			return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("nothing to do"))
		}
		resp := connect.NewResponse(wrapperspb.String(strings.ToUpper(r.Msg.Value)))
		resp.Header().Set("X-Head", r.Header().Get("X-Ask"))
		resp.Trailer().Set("X-Tail", "tail")
		return resp, nil
	}))
	mux.Handle(count, connect.NewServerStreamHandler(count, func(_ context.Context, r *connect.Request[number], s *connect.ServerStream[text]) error {
		for i := range r.Msg.Value {
			if err := s.Send(wrapperspb.String(fmt.Sprint(i))); err != nil {
				return err
			}
		}
		s.ResponseTrailer().Set("X-Tail", "tail")
		return connect.NewError(connect.CodeOutOfRange, errors.New("no more numbers"))
	}))
	mux.Handle(gather, connect.NewClientStreamHandler(gather, func(_ context.Context, s *connect.ClientStream[text]) (*connect.Response[number], error) {
		total := 0
		for s.Receive() {
			total += len(s.Msg().Value)
		}
		return connect.NewResponse(wrapperspb.Int32(int32(total))), s.Err()
	}))
	mux.Handle(wait, connect.NewServerStreamHandler(wait, func(ctx context.Context, _ *connect.Request[emptypb.Empty], s *connect.ServerStream[text]) error {
		if err := s.Send(wrapperspb.String("begun")); err != nil {
			return err
		}
		<-ctx.Done()
		cancelled <- struct{}{}
		return ctx.Err()
	}))
	return mux
}

func TestConnect(t *testing.T) {
	var cancelled chan struct{}
	onEngines(t, func(_ *testing.T, app *dunlin.App) {
		cancelled = make(chan struct{}, 1)
		app.Mount("/test.v1.Text", connectService(cancelled))
	}, func(t *testing.T, url string) {
		for name, options := range map[string][]connect.ClientOption{
			"Connect":           nil,
			"Connect with JSON": {connect.WithProtoJSON()},
			"gRPC-Web":          {connect.WithGRPCWeb()},
			"compressed":        {connect.WithSendGzip()},
		} {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				connectUnary(t, ctx, url, options)
				connectStream(t, ctx, url, options)
				connectUpload(t, ctx, url, options)
				connectCancel(t, ctx, url, options, cancelled)
			})
		}
	})
}

func connectUnary(t *testing.T, ctx context.Context, url string, options []connect.ClientOption) {
	client := connect.NewClient[text, text](http.DefaultClient, url+upper, options...)
	for _, word := range []string{"word", strings.Repeat("long ", 100_000)} {
		req := connect.NewRequest(wrapperspb.String(word))
		req.Header().Set("X-Ask", "head")
		resp, err := client.CallUnary(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Msg.Value != strings.ToUpper(word) || resp.Header().Get("X-Head") != "head" || resp.Trailer().Get("X-Tail") != "tail" {
			t.Errorf("got %.20q, %v, %v", resp.Msg.Value, resp.Header(), resp.Trailer())
		}
	}
	if _, err := client.CallUnary(ctx, connect.NewRequest(wrapperspb.String(""))); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("error: %v", err)
	}
}

func connectStream(t *testing.T, ctx context.Context, url string, options []connect.ClientOption) {
	const most = 200
	stream, err := connect.NewClient[number, text](http.DefaultClient, url+count, options...).
		CallServerStream(ctx, connect.NewRequest(wrapperspb.Int32(most)))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	got := 0
	for stream.Receive() {
		if stream.Msg().Value != fmt.Sprint(got) {
			t.Fatalf("message %d is %q", got, stream.Msg().Value)
		}
		got++
	}
	if got != most || connect.CodeOf(stream.Err()) != connect.CodeOutOfRange || stream.ResponseTrailer().Get("X-Tail") != "tail" {
		t.Errorf("%d messages, %v, %v", got, stream.Err(), stream.ResponseTrailer())
	}
}

func connectUpload(t *testing.T, ctx context.Context, url string, options []connect.ClientOption) {
	stream := connect.NewClient[text, number](http.DefaultClient, url+gather, options...).CallClientStream(ctx)
	piece := wrapperspb.String(string(bytes.Repeat([]byte("x"), 10_000)))
	for range 20 {
		if err := stream.Send(piece); err != nil {
			t.Fatal(err)
		}
	}
	resp, err := stream.CloseAndReceive()
	if err != nil {
		t.Fatal(err)
	}
	if resp.Msg.Value != 200_000 {
		t.Errorf("got %d bytes", resp.Msg.Value)
	}
}

// A client that cancels its call cancels the context of the procedure.
func connectCancel(t *testing.T, ctx context.Context, url string, options []connect.ClientOption, cancelled <-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := connect.NewClient[emptypb.Empty, text](http.DefaultClient, url+wait, options...).
		CallServerStream(ctx, connect.NewRequest(new(emptypb.Empty)))
	if err != nil {
		t.Fatal(err)
	}
	if !stream.Receive() || stream.Msg().Value != "begun" {
		t.Fatalf("got %v", stream.Err())
	}
	cancel()
	await(t, "the end of the procedure", cancelled)
	_ = stream.Close()
}

// A stream that its client aborts is not complete. The context of an RPC ends before a Send fails, so the RPC is canceled and
// has no unknown error.
func TestConnectStreamsThatBreakOff(t *testing.T) {
	type outcome struct {
		received int
		err      error
	}
	ended := make(chan outcome, 1)
	mux := http.NewServeMux()
	mux.Handle(gather, connect.NewClientStreamHandler(gather, func(_ context.Context, s *connect.ClientStream[text]) (*connect.Response[number], error) {
		n := 0
		for s.Receive() {
			n++
		}
		ended <- outcome{n, s.Err()}
		return connect.NewResponse(wrapperspb.Int32(int32(n))), s.Err()
	}))
	large := wrapperspb.String(strings.Repeat("x", 10_000))
	mux.Handle(count, connect.NewServerStreamHandler(count, func(ctx context.Context, _ *connect.Request[number], s *connect.ServerStream[text]) error {
		for n := 0; ; n++ {
			if err := s.Send(large); err != nil {
				ended <- outcome{n, ctx.Err()}
				return err
			}
		}
	}))
	onEngines(t, func(_ *testing.T, app *dunlin.App) { app.Mount("/test.v1.Text", mux) }, func(t *testing.T, url string) {
		message := "\x00\x00\x00\x00\x07\x0a\x05hello" // in the envelope of a stream
		for range 5 {
			conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			body := strings.Repeat(fmt.Sprintf("%x\r\n%s\r\n", len(message), message), 10_000)
			_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/connect+proto\r\nTransfer-Encoding: chunked\r\n\r\n%s", gather, body)
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.Close()
			if got := await(t, "the end of a stream", ended); got.received != 10_000 || got.err == nil {
				t.Errorf("%d messages of a client that broke off, %v", got.received, got.err)
			}
			ctx, leave := context.WithCancel(t.Context())
			stream, err := connect.NewClient[number, text](http.DefaultClient, url+count).CallServerStream(ctx, connect.NewRequest(wrapperspb.Int32(1)))
			if err != nil || !stream.Receive() {
				t.Fatal(err, stream.Err())
			}
			leave()
			if got := await(t, "a Send that fails", ended); got.err == nil {
				t.Errorf("the client disconnected after %d messages, but the context is not cancelled", got.received)
			}
			_ = stream.Close()
		}
	})
}
