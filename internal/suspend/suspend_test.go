package suspend_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/suspend"
)

func none(v any) (string, bool) { return "", false }

func TestPauseAndResume(t *testing.T) {
	c := suspend.New[int, string]()
	c.Go(func() string {
		if n := c.Pause(); n == nil || *n != 7 {
			return "wrong"
		}
		return "right"
	}, none)
	if _, ended := c.Wait(); ended {
		t.Fatal("the function ended before it was resumed")
	}
	n := 7
	if got := c.Resume(&n); got != "right" {
		t.Errorf("got %q", got)
	}
}

func TestEndsWithoutAPause(t *testing.T) {
	c := suspend.New[int, string]()
	c.Go(func() string { return "out" }, none)
	if out, ended := c.Wait(); !ended || out != "out" {
		t.Errorf("got %q, %v", out, ended)
	}
}

func TestCancelSuspendedFunction(t *testing.T) {
	c, told := suspend.New[int, string](), false
	c.Go(func() string { told = c.Pause() == nil; panic("on the way out") }, none)
	c.Wait()
	if c.GiveUp(); !told {
		t.Error("the function was not cancelled")
	}
}

// How the function ends, its caller does.
func TestPanicAndGoexit(t *testing.T) {
	errOwn := errors.New("own")
	recovered := func(v any) (string, bool) { return "recovered", v != errOwn }
	end := func(f func() string) (out string, panicked any, exited bool) {
		c, done := suspend.New[int, string](), make(chan struct{})
		c.Go(f, recovered)
		exited = true
		go func() {
			defer close(done)
			defer func() {
				if panicked = recover(); panicked != nil {
					exited = false
				}
			}()
			out, _ = c.Wait()
			exited = false
		}()
		<-done
		return out, panicked, exited
	}
	if out, v, exited := end(func() string { panic("other") }); out != "recovered" || v != nil || exited {
		t.Errorf("panic of the function: got %q, %v, %v", out, v, exited)
	}
	if _, v, _ := end(func() string { panic(errOwn) }); v != errOwn {
		t.Errorf("panic of the caller: got %v", v)
	}
	if _, v, exited := end(func() string { runtime.Goexit(); return "" }); !exited || v != nil {
		t.Errorf("Goexit: got %v, %v", v, exited)
	}
}
