package h2_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/dunlinhttp/dunlin"
)

// testService implements each kind of gRPC call.
type testService struct {
	pb.UnimplementedTestServiceServer
	begun, cancelled chan struct{}
}

func (p *testService) UnaryCall(ctx context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	if err := p.echoMetadata(ctx); err != nil {
		return nil, err
	}
	if st := in.GetResponseStatus(); st != nil {
		return nil, status.Error(codes.Code(st.Code), st.Message)
	}
	if in.ResponseSize < 0 {
		return nil, p.wait(ctx)
	}
	return &pb.SimpleResponse{Payload: &pb.Payload{Body: []byte(pattern(int(in.ResponseSize)))}}, nil
}

// echoMetadata sends the client's x-ask values in the header x-head, and its x-ask-bin values in the trailer x-tail-bin.
func (p *testService) echoMetadata(ctx context.Context) error {
	md, _ := metadata.FromIncomingContext(ctx)
	if err := grpc.SetHeader(ctx, metadata.Pairs("x-head", strings.Join(md["x-ask"], ","))); err != nil {
		return err
	}
	return grpc.SetTrailer(ctx, metadata.MD{"x-tail-bin": md["x-ask-bin"]})
}

// wait waits until the call is cancelled.
func (p *testService) wait(ctx context.Context) error {
	p.begun <- struct{}{}
	<-ctx.Done()
	p.cancelled <- struct{}{}
	return ctx.Err()
}

func (p *testService) StreamingOutputCall(in *pb.StreamingOutputCallRequest, s pb.TestService_StreamingOutputCallServer) error {
	for _, want := range in.ResponseParameters {
		if err := s.Send(&pb.StreamingOutputCallResponse{Payload: &pb.Payload{Body: []byte(pattern(int(want.Size)))}}); err != nil {
			return err
		}
	}
	return status.Error(codes.OutOfRange, "end: 100 % of «them»")
}

func (p *testService) StreamingInputCall(s pb.TestService_StreamingInputCallServer) error {
	total := 0
	for {
		in, err := s.Recv()
		if err == io.EOF {
			return s.SendAndClose(&pb.StreamingInputCallResponse{AggregatedPayloadSize: int32(total)})
		}
		if err != nil {
			return err
		}
		total += len(in.Payload.Body)
	}
}

func (p *testService) FullDuplexCall(s pb.TestService_FullDuplexCallServer) error {
	for {
		in, err := s.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if in.Payload == nil {
			return p.wait(s.Context())
		}
		if err := s.Send(&pb.StreamingOutputCallResponse{Payload: in.Payload}); err != nil {
			return err
		}
	}
}

// grpc-go's own ServeHTTP works as an action, for grpc-go's client.
func TestGRPC(t *testing.T) {
	t.Parallel()
	var p *testService
	onEach(t, dunlin.Config{}, func(app *dunlin.App) {
		p = &testService{begun: make(chan struct{}, 1), cancelled: make(chan struct{}, 1)}
		handler := grpc.NewServer()
		pb.RegisterTestServiceServer(handler, p)
		app.HandleStd("POST", "/{service}/{method}", handler).MaxBody(1 << 40)
	}, func(t *testing.T, s *server) {
		transport := insecure.NewCredentials()
		if s.secure {
			transport = credentials.NewTLS(&tls.Config{RootCAs: s.trusted, ServerName: "127.0.0.1"})
		}
		conn, err := grpc.NewClient("passthrough:///"+s.addr, grpc.WithTransportCredentials(transport))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		client := pb.NewTestServiceClient(conn)
		for name, f := range map[string]func(*testing.T, context.Context, pb.TestServiceClient, *testService){
			"unary": grpcUnary, "errors": grpcErrors, "server stream": grpcServerStream, "client stream": grpcClientStream,
			"bidi stream": grpcBidi, "deadline": grpcDeadline, "cancelled": grpcCancelled, "many at once": grpcMany,
		} {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				f(t, ctx, client, p)
			})
		}
		_ = conn.Close() // until then, the server holds memory for it
		wantNothingHeld(t, s)
	})
}

func grpcUnary(t *testing.T, ctx context.Context, c pb.TestServiceClient, _ *testService) {
	ctx = metadata.AppendToOutgoingContext(ctx, "x-ask", "one", "x-ask", "two", "x-ask-bin", "\x00\xff")
	for _, n := range []int{0, 1, 100_000, 1_000_000} {
		for _, options := range [][]grpc.CallOption{nil, {grpc.UseCompressor(gzip.Name)}} {
			var head, tail metadata.MD
			out, err := c.UnaryCall(ctx, &pb.SimpleRequest{ResponseSize: int32(n), Payload: &pb.Payload{Body: []byte(pattern(n))}},
				append(options, grpc.Header(&head), grpc.Trailer(&tail))...)
			if err != nil {
				t.Fatal(err)
			}
			if string(out.Payload.Body) != pattern(n) || fmt.Sprint(head["x-head"]) != "[one,two]" || fmt.Sprintf("%q", tail["x-tail-bin"]) != `["\x00\xff"]` {
				t.Errorf("%d of %d bytes, %v, %v", len(out.Payload.Body), n, head, tail)
			}
		}
	}
}

func grpcErrors(t *testing.T, ctx context.Context, c pb.TestServiceClient, _ *testService) {
	const text = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"
	_, err := c.UnaryCall(ctx, &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Code: 5, Message: text}})
	if st, _ := status.FromError(err); st.Code() != codes.NotFound || st.Message() != text {
		t.Errorf("got %v", err)
	}
	if _, err := c.UnimplementedCall(ctx, new(pb.Empty)); status.Code(err) != codes.Unimplemented {
		t.Errorf("got %v", err)
	}
}

func grpcServerStream(t *testing.T, ctx context.Context, c pb.TestServiceClient, _ *testService) {
	sizes := []int32{31415, 0, 9, 2653, 58979, 200_000}
	in := new(pb.StreamingOutputCallRequest)
	for _, n := range sizes {
		in.ResponseParameters = append(in.ResponseParameters, &pb.ResponseParameters{Size: n})
	}
	s, err := c.StreamingOutputCall(ctx, in)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range sizes {
		out, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if string(out.Payload.Body) != pattern(int(n)) {
			t.Errorf("%d of %d bytes", len(out.Payload.Body), n)
		}
	}
	if _, err := s.Recv(); status.Code(err) != codes.OutOfRange || status.Convert(err).Message() != "end: 100 % of «them»" {
		t.Errorf("got %v", err)
	}
}

func grpcClientStream(t *testing.T, ctx context.Context, c pb.TestServiceClient, _ *testService) {
	s, err := c.StreamingInputCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if err := s.Send(&pb.StreamingInputCallRequest{Payload: &pb.Payload{Body: make([]byte, 20_000)}}); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := s.CloseAndRecv(); err != nil || out.AggregatedPayloadSize != 1_000_000 {
		t.Errorf("got %v, %v", out, err)
	}
}

func grpcBidi(t *testing.T, ctx context.Context, c pb.TestServiceClient, _ *testService) {
	s, err := c.FullDuplexCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		word := fmt.Sprint("ping ", i)
		if err := s.Send(&pb.StreamingOutputCallRequest{Payload: &pb.Payload{Body: []byte(word)}}); err != nil {
			t.Fatal(err)
		}
		out, err := s.Recv() // before the next
		if err != nil {
			t.Fatal(err)
		}
		if string(out.Payload.Body) != word {
			t.Errorf("got %q", out.Payload.Body)
		}
	}
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); err != io.EOF {
		t.Errorf("got %v", err)
	}
}

func grpcDeadline(t *testing.T, ctx context.Context, c pb.TestServiceClient, p *testService) {
	ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond) // it passes whether or not the call has begun
	defer cancel()
	if _, err := c.UnaryCall(ctx, &pb.SimpleRequest{ResponseSize: -1}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
	select {
	case <-p.begun:
		await(t, "the cancellation of the call", p.cancelled)
	default:
	}
}

func grpcCancelled(t *testing.T, ctx context.Context, c pb.TestServiceClient, p *testService) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := c.FullDuplexCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(new(pb.StreamingOutputCallRequest)); err != nil {
		t.Fatal(err)
	}
	await(t, "the start of the call", p.begun)
	cancel()
	await(t, "the cancellation of the call", p.cancelled)
	if _, err := s.Recv(); status.Code(err) != codes.Canceled {
		t.Errorf("got %v", err)
	}
}

func grpcMany(t *testing.T, ctx context.Context, c pb.TestServiceClient, p *testService) {
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			for j := range 10 {
				n := 1000*i + j
				if out, err := c.UnaryCall(ctx, &pb.SimpleRequest{ResponseSize: int32(n)}); err != nil || len(out.Payload.Body) != n {
					t.Errorf("%d bytes: %v", n, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// connect-go's handlers work as actions, in its three protocols, with bidirectional streams.
func TestConnect(t *testing.T) {
	t.Parallel()
	const unary, bidi = "/test.v1.Text/Unary", "/test.v1.Text/Bidi"
	var cancelled chan struct{}
	onEach(t, dunlin.Config{}, func(app *dunlin.App) {
		cancelled = make(chan struct{}, 1)
		mux := http.NewServeMux()
		mux.Handle(unary, connect.NewUnaryHandler(unary, func(_ context.Context, r *connect.Request[pb.SimpleRequest]) (*connect.Response[pb.SimpleResponse], error) {
			if r.Msg.ResponseSize < 0 {
				return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("response size is negative"))
			}
			resp := connect.NewResponse(&pb.SimpleResponse{Payload: r.Msg.Payload})
			resp.Trailer().Set("X-Tail", "tail")
			return resp, nil
		}))
		mux.Handle(bidi, connect.NewBidiStreamHandler(bidi, func(_ context.Context, s *connect.BidiStream[pb.Payload, pb.Payload]) error {
			s.ResponseTrailer().Set("X-Tail", "tail")
			for {
				in, err := s.Receive()
				if errors.Is(err, io.EOF) {
					return connect.NewError(connect.CodeOutOfRange, errors.New("no more"))
				}
				if err != nil {
					cancelled <- struct{}{}
					return err
				}
				if err := s.Send(in); err != nil {
					return err
				}
			}
		}))
		app.Mount("/test.v1.Text", mux)
	}, func(t *testing.T, s *server) {
		for name, options := range map[string][]connect.ClientOption{
			"Connect": nil, "gRPC": {connect.WithGRPC()}, "gRPC-Web": {connect.WithGRPCWeb(), connect.WithSendGzip()},
		} {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				connectUnary(t, connect.NewClient[pb.SimpleRequest, pb.SimpleResponse](s.client(t), s.url(unary), options...), ctx)
				client := connect.NewClient[pb.Payload, pb.Payload](s.client(t), s.url(bidi), options...)
				connectBidi(t, client, ctx)
				connectCancel(t, client, ctx, cancelled)
			})
		}
		wantNothingHeld(t, s)
	})
}

func connectUnary(t *testing.T, c *connect.Client[pb.SimpleRequest, pb.SimpleResponse], ctx context.Context) {
	body := []byte(pattern(300_000))
	out, err := c.CallUnary(ctx, connect.NewRequest(&pb.SimpleRequest{Payload: &pb.Payload{Body: body}}))
	if err != nil {
		t.Fatal(err)
	}
	if string(out.Msg.Payload.Body) != string(body) || out.Trailer().Get("X-Tail") != "tail" {
		t.Errorf("%d bytes, %v", len(out.Msg.Payload.Body), out.Trailer())
	}
	if _, err := c.CallUnary(ctx, connect.NewRequest(&pb.SimpleRequest{ResponseSize: -1})); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("got %v", err)
	}
}

func connectBidi(t *testing.T, c *connect.Client[pb.Payload, pb.Payload], ctx context.Context) {
	s := c.CallBidiStream(ctx)
	for i := range 50 {
		word := []byte(fmt.Sprint("ping ", i))
		if err := s.Send(&pb.Payload{Body: word}); err != nil {
			t.Fatal(err)
		}
		if out, err := s.Receive(); err != nil || string(out.Body) != string(word) {
			t.Fatalf("got %v, %v", out, err)
		}
	}
	if err := s.CloseRequest(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Receive(); connect.CodeOf(err) != connect.CodeOutOfRange || s.ResponseTrailer().Get("X-Tail") != "tail" {
		t.Errorf("got %v, %v", err, s.ResponseTrailer())
	}
	_ = s.CloseResponse()
}

func connectCancel(t *testing.T, c *connect.Client[pb.Payload, pb.Payload], ctx context.Context, cancelled <-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := c.CallBidiStream(ctx)
	if err := s.Send(&pb.Payload{Body: []byte("word")}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Receive(); err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = s.CloseResponse() // net/http's client looks at the context only between pieces of a body
	await(t, "the cancellation of the call", cancelled)
	_ = s.CloseRequest()
}
