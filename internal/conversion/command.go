package conversion

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// grace is the time for surviving children of a command to write to its stdout.
const grace = time.Second

// maxName bounds the text of a command in errors, in bytes.
const maxName = 100

// Command returns a Converter that runs command with /bin/sh -c, once for each call, in the current
// directory and environment. The command reads a ConversionReview (JSON) from stdin, answers on
// stdout and exits with 0. After timeout (0 means 30 s) the command is killed with its process
// group. Command itself runs nothing.
func Command(command string, timeout time.Duration) (*Converter, error) {
	if strings.TrimSpace(command) == "" {
		return nil, errors.New("conversion command: empty")
	}
	if strings.ContainsRune(command, 0) {
		return nil, errors.New("conversion command: has a NUL byte")
	}
	name := command
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "") + "..."
	}
	at := func(*apiextensionsv1.CustomResourceDefinition) (endpoint, error) {
		return endpoint{url: "https://command.invalid/", send: program(command).run}, nil
	}
	return &Converter{name: fmt.Sprintf("command %q", name), timeout: timeout, at: at}, nil
}

// program is the command of an endpoint. The library requires a URL; nothing resolves the URL.
type program string

// run runs the command for one call. A child that holds stdout after the end of the command is
// killed after the grace time; the answer is the output until then.
func (p program) run(req *http.Request, limit int64) (answer, error) {
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	stdout := &bounded{limit: limit, full: cancel}
	stderr := &tail{}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", string(p))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = req.Body, stdout, stderr
	cmd.WaitDelay = grace
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return answer{}, failed(broken, "cannot be run: %s", err)
	}
	err := cmd.Wait()
	killGroup(cmd)
	var exit *exec.ExitError
	switch {
	case req.Context().Err() != nil:
		return answer{}, req.Context().Err()
	case stdout.over:
		return answer{}, tooLong(limit)
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return answer{contentType: "application/json", body: stdout.data.Bytes()}, nil
	case errors.As(err, &exit) && (exit.ExitCode() == 126 || exit.ExitCode() == 127):
		return answer{}, failed(broken, "cannot be run: %s%s", err, stderr) // the shell did not find the command
	}
	return answer{}, failed(garbled, "%s%s", err, stderr)
}

// bounded keeps an answer up to a limit.
type bounded struct {
	data  bytes.Buffer
	limit int64
	full  func() // nil for none
	over  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if int64(b.data.Len())+int64(len(p)) > b.limit {
		if b.over = true; b.full != nil {
			b.full()
		}
		return 0, errTooLong
	}
	return b.data.Write(p)
}

// tail keeps the end of the output.
type tail struct{ data []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.data = append(t.data, p[max(0, len(p)-maxSaid):]...)
	t.data = append(t.data[:0], t.data[max(0, len(t.data)-maxSaid):]...)
	return len(p), nil
}

// String returns the output as the end of a reason.
func (t *tail) String() string {
	if len(t.data) == 0 {
		return ""
	}
	return ": " + string(t.data)
}
