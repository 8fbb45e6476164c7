package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

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
