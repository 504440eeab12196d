package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func echo(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	for {
		kind, b, err := conn.Read(r.Context())
		if err != nil {
			return
		}
		if conn.Write(r.Context(), kind, b) != nil {
			return
		}
	}
}

// TestWebSockets has eight of them open past the deadline; they hold no seat.
func TestWebSockets(t *testing.T) {
	up := newBackend(t, echo)
	for _, protocol := range []string{"auto", "h2c"} { // an upgrade needs HTTP/1.1 whatever the rest uses
		g := newRig(t, UpstreamConfig{URL: up.URL, Protocol: protocol}, func(x *exchange) { x.deadline = time.Now().Add(100 * time.Millisecond) })
		var conns []*websocket.Conn
		for range 8 {
			conn, _, err := websocket.Dial(t.Context(), g.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.CloseNow()
			conns = append(conns, conn)
		}
		if g.released.Load() != 8 || g.streams.open.Load() != 8 || g.streams.upgrades.Load() != 8 {
			t.Errorf("%d released, %d open, %d upgraded", g.released.Load(), g.streams.open.Load(), g.streams.upgrades.Load())
		}
		for round := range 3 {
			for i, conn := range conns {
				want := fmt.Sprint(round, i)
				if err := conn.Write(t.Context(), websocket.MessageText, []byte(want)); err != nil {
					t.Fatal(err)
				}
				if _, got, err := conn.Read(t.Context()); err != nil || string(got) != want {
					t.Fatalf("%q, %v, want %q", got, err, want)
				}
			}
			time.Sleep(60 * time.Millisecond)
		}
		for _, conn := range conns {
			if err := conn.Close(websocket.StatusNormalClosure, ""); err != nil {
				t.Error(err)
			}
		}
		for range conns {
			if x := g.end(t); x.fault != faultNone || x.status != http.StatusSwitchingProtocols || x.upBytes == 0 || x.downBytes == 0 {
				t.Errorf("%+v", x)
			}
		}
		if g.streams.open.Load() != 0 || g.streams.upgrades.Load() != 0 {
			t.Errorf("%d open, %d upgraded", g.streams.open.Load(), g.streams.upgrades.Load())
		}
	}
}

// TestUpgradesEndWithTheBase cancels the server's base context, as a drain does
// that has run out of time.
func TestUpgradesEndWithTheBase(t *testing.T) {
	up := newBackend(t, echo)
	g := newRig(t, UpstreamConfig{URL: up.URL}, nil)
	conn, _, err := websocket.Dial(t.Context(), g.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	g.stop()
	if _, _, err := conn.Read(t.Context()); err == nil {
		t.Error("the connection is still open")
	}
	g.end(t)
	if g.streams.upgrades.Load() != 0 {
		t.Error("it still counts")
	}
}

// TestRawUpgrade passes any protocol, half-closed connections, and bytes that
// came with the header.
func TestRawUpgrade(t *testing.T) {
	up := rawUpstream(t, func(conn net.Conn, _ string) {
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: gis\r\n\r\nhello ")
		said, _ := io.ReadAll(conn) // to the half-close
		_, _ = conn.Write(said)
	})
	g := newRig(t, UpstreamConfig{URL: "http://" + up}, nil)
	conn, err := net.Dial("tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: gis\r\n\r\n")
	r := bufio.NewReader(conn)
	if head, err := readHead(r); err != nil || !strings.HasPrefix(head, "HTTP/1.1 101 ") {
		t.Fatalf("%q %v", head, err)
	}
	_, _ = io.WriteString(conn, "world")
	_ = conn.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(r); err != nil || string(got) != "hello world" {
		t.Errorf("%q %v", got, err)
	}
}

// TestNoTunnelForHTTP keeps requests that nothing would price from passing
// behind an upgrade.
func TestNoTunnelForHTTP(t *testing.T) {
	seen := make(chan http.Header, 1)
	up := newBackend(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header })
	for _, upgrade := range []string{"h2c", "websocket, H2C", "TLS/1.0", "HTTP/2.0"} {
		g := newRig(t, UpstreamConfig{URL: up.URL}, nil)
		raw(t, g.addr, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: "+upgrade+"\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")
		h := <-seen
		if h.Get("Upgrade") != "" || h.Get("Connection") != "" || h.Get("Http2-Settings") != "" {
			t.Errorf("%s: %v", upgrade, h)
		}
	}
	up2 := rawUpstream(t, func(conn net.Conn, _ string) {
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
	})
	g := newRig(t, UpstreamConfig{URL: "http://" + up2}, nil)
	for _, ask := range []string{"", "Connection: Upgrade\r\nUpgrade: websocket\r\n"} {
		if got := raw(t, g.addr, "GET / HTTP/1.1\r\nHost: x\r\n"+ask+"\r\n"); !strings.HasPrefix(got, "HTTP/1.1 502 ") {
			t.Errorf("a switch to what was not asked for: %q", got)
		}
	}
}

// streamer is a gRPC service without generated code: the health service's
// messages, a Watch that sends some and ends with a status, details and
// trailers.
type streamer struct {
	healthpb.UnimplementedHealthServer
}

func (streamer) Check(ctx context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	_ = grpc.SetTrailer(ctx, metadata.Pairs("saw", strings.Join(md.Get("x-key"), ",")))
	if r.GetService() == "fail" {
		return nil, status.Error(codes.ResourceExhausted, "no")
	}
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

func (streamer) Watch(_ *healthpb.HealthCheckRequest, s healthpb.Health_WatchServer) error {
	for i := range 5 {
		if err := s.Send(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_ServingStatus(i % 3)}); err != nil {
			return err
		}
		time.Sleep(30 * time.Millisecond)
	}
	s.SetTrailer(metadata.Pairs("sum", "10"))
	return status.Error(codes.Aborted, "done for today")
}

// TestGRPC goes over h2c on both sides, past the deadline.
func TestGRPC(t *testing.T) {
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, streamer{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	g := newRig(t, UpstreamConfig{URL: "http://" + l.Addr().String()}, func(x *exchange) { x.deadline = time.Now().Add(100 * time.Millisecond) })
	conn, err := grpc.NewClient(g.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	client := healthpb.NewHealthClient(conn)

	var trailer metadata.MD
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-key", "k")
	if _, err := client.Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Trailer(&trailer)); err != nil || strings.Join(trailer.Get("saw"), "") != "k" {
		t.Errorf("%v, trailers %v", err, trailer)
	}
	if _, err := client.Check(ctx, &healthpb.HealthCheckRequest{Service: "fail"}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("%v", err)
	}
	stream, err := client.Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		_, err := stream.Recv()
		if err == nil {
			continue
		}
		if n != 5 || status.Code(err) != codes.Aborted || status.Convert(err).Message() != "done for today" || strings.Join(stream.Trailer().Get("sum"), "") != "10" {
			t.Errorf("%d messages, %v, trailers %v", n, err, stream.Trailer())
		}
		break
	}
	for range 3 {
		if x := g.end(t); x.fault != faultNone {
			t.Errorf("%+v", x)
		}
	}
	if g.released.Load() != 3 || g.streams.open.Load() != 0 {
		t.Errorf("%d released, %d open", g.released.Load(), g.streams.open.Load())
	}
}

// TestGRPCCallerLeaves sees a cancelled call cancelled upstream.
func TestGRPCCallerLeaves(t *testing.T) {
	server := grpc.NewServer()
	hs := health.NewServer()
	healthpb.RegisterHealthServer(server, hs)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	g := newRig(t, UpstreamConfig{URL: "http://" + l.Addr().String()}, nil)
	conn, err := grpc.NewClient(g.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := stream.Recv(); status.Code(err) != codes.Canceled {
		t.Error(err)
	}
	if x := g.end(t); x.fault != faultGone || !errors.Is(x.err, errLeft) {
		t.Errorf("%+v", x)
	}
}
