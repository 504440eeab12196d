package bed

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// startWithin bounds the start of a server, on a machine that is busy.
const startWithin = time.Minute

// child is a server's process.
type child struct {
	name string
	log  string // the file with what it prints
	cmd  *exec.Cmd
	quit syscall.Signal // what ends it, with all that it started
	done chan struct{}  // closed when it has ended
}

// spawn starts a server. It gets quit when it is to end, and when this process
// dies, a kill included.
func (b *Bed) spawn(name string, cmd *exec.Cmd, quit syscall.Signal) (*child, error) {
	c := &child{name: name, log: filepath.Join(b.Run, name+".log"), cmd: cmd, quit: quit, done: make(chan struct{})}
	out, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true // an interrupt of the test is not the server's
	cmd.SysProcAttr.Pdeathsig = quit

	started := make(chan error)
	go func() {
		// The kernel sends the signal when the thread that started the child
		// ends, so that thread has to stay: prctl(2), PR_SET_PDEATHSIG.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // it is ended by a signal
			close(c.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	b.mu.Lock()
	b.children = append(b.children, c)
	b.mu.Unlock()
	return c, nil
}

// end ends the child and waits for it.
func (c *child) end() {
	_ = c.cmd.Process.Signal(c.quit) // it may have ended
	select {
	case <-c.done:
	case <-time.After(10 * time.Second):
	}
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) // its group, where anything is left of it
	<-c.done
}

// until waits until try gives no error, and gives the last one where it does
// not come to that, with what the child printed.
func (c *child) until(what string, try func() error) error {
	deadline := time.After(startWithin)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
			continue
		case <-c.done:
			err = errors.Join(errors.New("it ended"), err)
		case <-deadline:
		}
		printed, _ := os.ReadFile(c.log)
		return fmt.Errorf("%s: not so that %s: %w\n%s", c.name, what, err, printed[max(0, len(printed)-4096):])
	}
}
