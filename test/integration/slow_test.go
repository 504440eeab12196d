package integration_test

import (
	"net"
	"syscall"
	"testing"
	"time"
)

// dialSmall connects with a receive buffer so small that what a client does not
// read stays with the server instead of in the kernel.
func dialSmall(t *testing.T, address string) net.Conn {
	t.Helper()
	dialer := net.Dialer{
		Timeout: 10 * time.Second,
		Control: func(_, _ string, raw syscall.RawConn) error {
			var failed error
			err := raw.Control(func(fd uintptr) {
				failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10)
			})
			if err != nil {
				return err
			}
			return failed
		},
	}
	connection, err := dialer.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return connection
}
