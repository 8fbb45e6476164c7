package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// stopTime is how long a process has to end by itself.
	stopTime = 10 * time.Second
	// probeTime is how long one probe of Until may take, and probePause the time between two.
	probeTime, probePause = 5 * time.Second, 20 * time.Millisecond
)

// Process is a child process.
type Process struct {
	name, log string
	cmd       *exec.Cmd
	stop      sync.Once
	stopping  chan struct{} // closed by stop, when the end is asked for
	done      chan struct{} // closed when the process has ended; err is set then
	err       error
}

// start runs a part. Its standard input has the configuration as a line, and stays open.
func start(s *Sandbox, name, part string, config any) (*Process, error) {
	line, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	self, err := ownProgram()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(s.path, name+".log"), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	cmd := exec.Command(self, Word, part, name)
	cmd.Args[0] = os.Args[0]
	cmd.Dir, cmd.Env = s.path, environment(s.path)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{s.lock}
	ownGroup(cmd)
	alive, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, alive.Close())
	}
	limitMemory(cmd.Process.Pid, s.most) // before it has the configuration
	p := &Process{name: name, log: log.Name(), cmd: cmd, stopping: make(chan struct{}), done: make(chan struct{})}
	go p.wait()
	_, _ = alive.Write(append(line, '\n')) // a child that is gone already says why in its log
	return p, nil
}

// environment is what a child gets of ours. Proxies, kubeconfigs and credentials stay out.
func environment(folder string) []string {
	return append(slices.DeleteFunc(os.Environ(), func(setting string) bool {
		name, _, _ := strings.Cut(setting, "=")
		return !slices.Contains([]string{"PATH", "LD_LIBRARY_PATH", "TZ", "GOMAXPROCS", "GOMEMLIMIT", "GOGC",
			"GODEBUG"}, name)
	}), "HOME="+folder, "TMPDIR="+folder)
}

// wait sees the end of the process, and ends what it may have left behind.
func (p *Process) wait() {
	ended := waitEnd(p.cmd.Process.Pid)
	if ended {
		killGroup(p.cmd.Process.Pid) // before its number is free
	}
	err := p.cmd.Wait()
	if !ended {
		killGroup(p.cmd.Process.Pid)
	}
	select {
	case <-p.stopping: // an end that was asked for
	default:
		if err != nil {
			p.err = died(p.name, p.log, p.cmd.ProcessState)
		}
	}
	close(p.done)
}

// Log is the path of the file with all that the process prints.
func (p *Process) Log() string { return p.log }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is a *Died when the process ended by itself and not well. It is nil while the process runs,
// and after Stop or Close.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Wait returns when the process has ended, with Err, or when the context has.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// While returns a context that ends with the process too; the cause is then the end of the process.
func (p *Process) While(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-p.done:
			cancel(p.unexpected())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Until waits until a probe of the process succeeds. It returns an error when the process ends
// before, and when the context does; the last failure of the probe is part of it then.
func (p *Process) Until(ctx context.Context, probe func(context.Context) error) error {
	ctx, cancel := p.While(ctx)
	defer cancel()
	for {
		once, stop := context.WithTimeout(ctx, probeTime)
		err := probe(once)
		stop()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); cause != ctx.Err() {
				return cause
			}
			return fmt.Errorf("%s is not ready: %w (%w)", p.name, ctx.Err(), err)
		case <-time.After(probePause):
		}
	}
}

// Explain returns why one of the processes has ended, if one has or does so within a second; else
// err. A client of a server that dies often sees no more than a closed connection.
func Explain(err error, processes ...*Process) error {
	if err == nil {
		return nil
	}
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); time.Sleep(probePause) {
		for _, p := range processes {
			select {
			case <-p.done:
				return p.unexpected()
			default:
			}
		}
	}
	return err
}

// unexpected is why the process has ended.
func (p *Process) unexpected() error {
	if p.err != nil {
		return p.err
	}
	return fmt.Errorf("%s has ended", p.name)
}

// Stop asks the process to end, and kills it when it has not after ten seconds, or when the context
// ends. It may be called more than once.
func (p *Process) Stop(ctx context.Context) {
	p.expectEnd()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	_ = p.Wait(ctx)
	p.kill()
}

// kill ends the process and all that it started.
func (p *Process) kill() {
	p.expectEnd()
	_ = p.cmd.Process.Kill()
	<-p.done
}

// expectEnd makes the end of the process no error.
func (p *Process) expectEnd() { p.stop.Do(func() { close(p.stopping) }) }

const (
	lastLines = 20       // lines of a log that an error keeps
	lineBytes = 16 << 10 // of one line, with the stack that zap puts there
	failed    = "part failed: "
)

// Died is the error of a process that ended by itself.
type Died struct {
	// Name is the name of the process.
	Name string
	// How is "exit status 2" or "signal: killed".
	How string
	// Cause is what the process said about its end: its panic, fatal error or last line.
	Cause string
	// Log has the last lines of all that it printed.
	Log []string
}

// Error names the process, how it ended, and the cause.
func (d *Died) Error() string {
	text := d.Name + " ended: " + d.How
	if d.Cause != "" {
		text += ": " + d.Cause
	}
	return text
}

// died reads why a process ended from its log.
func died(name, log string, state *os.ProcessState) error {
	d := &Died{Name: name, How: how(state)}
	if err := d.read(log); err != nil {
		return errors.Join(d, err)
	}
	return d
}

// how tells how a process ended. A part that runs a program tells its signal by the exit status, as
// shells do.
func how(state *os.ProcessState) string {
	if signal := state.ExitCode() - 128; signal > 0 && signal < 65 {
		return "signal: " + syscall.Signal(signal).String()
	}
	return state.String()
}

// read takes the cause and the last lines from a log of any size.
func (d *Died) read(log string) error {
	f, err := os.Open(log)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewReader(f)
	var fatal, own string
	for {
		line, err := readLine(lines)
		if err != nil && err != io.EOF {
			return err
		}
		if line != "" {
			d.Log = append(d.Log, line)
			d.Log = d.Log[max(0, len(d.Log)-lastLines):]
			if text, is := lastWords(line); is && fatal == "" {
				fatal = text
			}
			if text, is := strings.CutPrefix(line, failed); is {
				own = text
			}
		}
		if err == io.EOF {
			break
		}
	}
	switch {
	case fatal != "":
		d.Cause = fatal
	case own != "":
		d.Cause = own
	case len(d.Log) > 0:
		d.Cause = message(d.Log[len(d.Log)-1])
	}
	return nil
}

// readLine reads a line without its end; of a long one it keeps the beginning.
func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part[:min(len(part), lineBytes-len(line))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			text := strings.ReplaceAll(string(line), "\u00a0", " ") // protobuf has either, by build
			return strings.TrimRight(text, "\r\n"), err
		}
	}
}

// lastWords is the text of a line that a process prints because it cannot go on: a panic, fatal
// error or signal of Go, or a fatal line of zap (etcd) or of klog (Kubernetes).
func lastWords(line string) (text string, is bool) {
	for _, start := range []string{"panic: ", "fatal error: "} {
		if strings.HasPrefix(line, start) {
			return line, true
		}
	}
	switch parseEntry(line)["level"] {
	case "panic", "fatal", "dpanic":
		return message(line), true
	}
	if regexp.MustCompile(`^SIG[A-Z]+: `).MatchString(line) { // of Go's runtime, where it gets no memory for itself
		return line, true
	}
	klog := regexp.MustCompile(`^F\d{4} [^]]*\] `)
	if start := klog.FindString(line); start != "" {
		return line[len(start):], true
	}
	return "", false
}

// parseEntry reads a line of zap's JSON; there is none in another line.
func parseEntry(line string) (e map[string]any) {
	if strings.HasPrefix(line, "{") {
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber() // a revision is no float
		_ = d.Decode(&e)
	}
	return e
}

// message is what a line says, without time and place in the code.
func message(line string) string {
	e := parseEntry(line)
	text, is := e["msg"].(string)
	if !is {
		return line
	}
	if reason, is := e["error"].(string); is {
		text += ": " + reason
	}
	for _, name := range []string{"msg", "error", "level", "ts", "caller", "stacktrace"} {
		delete(e, name)
	}
	var more []string
	for _, name := range slices.Sorted(maps.Keys(e)) {
		more = append(more, fmt.Sprintf("%s %v", name, e[name]))
	}
	if more != nil {
		text += " (" + strings.Join(more, ", ") + ")"
	}
	return text
}
