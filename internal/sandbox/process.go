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
	// stopTime is the time limit for a process to end by itself.
	stopTime = 10 * time.Second
	// probeTime is the time limit for one probe of Until, and probePause the time between two
	// probes.
	probeTime, probePause = 5 * time.Second, 20 * time.Millisecond
)

// Process is a child process.
type Process struct {
	name, log string
	cmd       *exec.Cmd
	stop      sync.Once
	stopping  chan struct{} // closed when the process is asked to end
	done      chan struct{} // closed when the process has ended; err is set before
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
	limitMemory(cmd.Process.Pid, s.most) // before it receives the configuration
	p := &Process{name: name, log: log.Name(), cmd: cmd, stopping: make(chan struct{}), done: make(chan struct{})}
	go p.wait()
	_, _ = alive.Write(append(line, '\n')) // if the child has ended, its log has the reason
	return p, nil
}

// environment returns the environment of a child: no proxies, kubeconfigs and credentials.
func environment(folder string) []string {
	return append(slices.DeleteFunc(os.Environ(), func(setting string) bool {
		name, _, _ := strings.Cut(setting, "=")
		return !slices.Contains([]string{"PATH", "LD_LIBRARY_PATH", "TZ", "GOMAXPROCS", "GOMEMLIMIT", "GOGC",
			"GODEBUG"}, name)
	}), "HOME="+folder, "TMPDIR="+folder)
}

// wait waits for the end of the process, and kills its remaining children.
func (p *Process) wait() {
	ended := waitEnd(p.cmd.Process.Pid)
	if ended {
		killGroup(p.cmd.Process.Pid) // before its PID is released
	}
	err := p.cmd.Wait()
	if !ended {
		killGroup(p.cmd.Process.Pid)
	}
	select {
	case <-p.stopping: // expected end
	default:
		if err != nil {
			p.err = died(p.name, p.log, p.cmd.ProcessState)
		}
	}
	close(p.done)
}

// Log returns the path of the log with all output of the process.
func (p *Process) Log() string { return p.log }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns a *Died if the process failed by itself. It returns nil while the process runs, and
// after Stop or Close.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Wait waits for the end of the process and returns Err, or returns when the context ends.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// While returns a context that also ends with the process; its cause is then the end of the
// process.
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

// Until waits until a probe of the process succeeds. It returns an error if the process or the
// context ends first; for the context, the error includes the last failure of the probe.
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

// Explain returns the reason why one of the processes has ended, if one ends within a second,
// otherwise err. A client of a crashing server often sees only a closed connection.
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

// unexpected returns the reason for the end of the process.
func (p *Process) unexpected() error {
	if p.err != nil {
		return p.err
	}
	return fmt.Errorf("%s has ended", p.name)
}

// Stop asks the process to end, and kills it after ten seconds or when the context ends. It may be
// called more than once.
func (p *Process) Stop(ctx context.Context) {
	p.expectEnd()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	_ = p.Wait(ctx)
	p.kill()
}

// kill kills the process and its children.
func (p *Process) kill() {
	p.expectEnd()
	_ = p.cmd.Process.Kill()
	<-p.done
}

// expectEnd marks the end of the process as expected, no error.
func (p *Process) expectEnd() { p.stop.Do(func() { close(p.stopping) }) }

const (
	lastLines = 20       // log lines kept in an error
	lineBytes = 16 << 10 // of one line, including zap's stack trace
	failed    = "part failed: "
)

// Died is the error of a process that ended unexpectedly.
type Died struct {
	// Name is the name of the process.
	Name string
	// How is "exit status 2" or "signal: killed".
	How string
	// Cause is the process's own reason: its panic, fatal error or last line.
	Cause string
	// Log has the last lines of the output.
	Log []string
}

// Error returns the name of the process, its exit status, and the cause.
func (d *Died) Error() string {
	text := d.Name + " ended: " + d.How
	if d.Cause != "" {
		text += ": " + d.Cause
	}
	return text
}

// died returns the error for an ended process, with the cause from its log.
func died(name, log string, state *os.ProcessState) error {
	d := &Died{Name: name, How: how(state)}
	if err := d.read(log); err != nil {
		return errors.Join(d, err)
	}
	return d
}

// how describes the exit status of a process. A part that runs a program passes on a signal as exit
// status, as shells do.
func how(state *os.ProcessState) string {
	if signal := state.ExitCode() - 128; signal > 0 && signal < 65 {
		return "signal: " + syscall.Signal(signal).String()
	}
	return state.String()
}

// read reads the cause and the last lines from a log of any size.
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

// readLine reads a line without its line ending, and truncates a long line.
func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part[:min(len(part), lineBytes-len(line))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			text := strings.ReplaceAll(string(line), "\u00a0", " ") // protobuf prints either, depending on the build
			return strings.TrimRight(text, "\r\n"), err
		}
	}
}

// lastWords returns the text of a line printed by a dying process: a panic, fatal error or signal
// of Go, or a fatal line of zap (etcd) or of klog (Kubernetes).
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
	if regexp.MustCompile(`^SIG[A-Z]+: `).MatchString(line) { // Go's runtime, if it gets no memory for itself
		return line, true
	}
	klog := regexp.MustCompile(`^F\d{4} [^]]*\] `)
	if start := klog.FindString(line); start != "" {
		return line[len(start):], true
	}
	return "", false
}

// parseEntry parses a line of zap's JSON, and returns nil for other lines.
func parseEntry(line string) (e map[string]any) {
	if strings.HasPrefix(line, "{") {
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber() // keeps revisions exact
		_ = d.Decode(&e)
	}
	return e
}

// message returns the message of a line, without time and code location.
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
