package integration_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/geoproxy/geoproxy/test/binary"
)

const echoMethod = "/geoproxy.test.Echo/Stream"

// echoService sends back what it gets, and ends with a trailer and a status of
// its own: both travel behind the body and are what a proxy loses first.
var echoService = grpc.ServiceDesc{
	ServiceName: "geoproxy.test.Echo",
	HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{{
		StreamName: "Stream", ServerStreams: true, ClientStreams: true,
		Handler: func(_ any, stream grpc.ServerStream) error {
			for {
				message := &wrapperspb.StringValue{}
				err := stream.RecvMsg(message)
				if errors.Is(err, io.EOF) {
					stream.SetTrailer(metadata.Pairs("x-rows", "3"))
					return status.Error(codes.OutOfRange, "no more rows")
				}
				if err != nil {
					return err
				}
				if err := stream.SendMsg(message); err != nil {
					return err
				}
			}
		},
	}},
}

func TestGRPCStreamsPassWithTheirTrailers(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	server.RegisterService(&echoService, struct{}{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	proxy := binary.Start(t, binary.Path(t), fmt.Sprintf(shortDeadline, "http://"+listener.Addr().String()))

	connection, err := grpc.NewClient(proxy.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	stream, err := connection.NewStream(ctx, &echoService.Streams[0], echoMethod)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		want := fmt.Sprintf("row %d", i)
		if err := stream.SendMsg(wrapperspb.String(want)); err != nil {
			t.Fatal(err)
		}
		got := &wrapperspb.StringValue{}
		if err := stream.RecvMsg(got); err != nil || got.GetValue() != want {
			t.Fatalf("got %q, %v, want %q", got.GetValue(), err, want)
		}
		time.Sleep(pastDeadline / 2)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	err = stream.RecvMsg(&wrapperspb.StringValue{})
	if status.Code(err) != codes.OutOfRange || status.Convert(err).Message() != "no more rows" {
		t.Errorf("the stream ended with %v, want the service's own OutOfRange", err)
	}
	if rows := stream.Trailer().Get("x-rows"); len(rows) != 1 || rows[0] != "3" {
		t.Errorf("trailer %q, want x-rows: 3", stream.Trailer())
	}
}
