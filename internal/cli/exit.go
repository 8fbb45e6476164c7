package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/pattern"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/s3"
)

// The exit statuses, as documented in the manual.
const (
	exitDone        = 0
	exitFailed      = 1   // could not read, write or verify; nothing was written
	exitFound       = 1   // a checking command found something
	exitUsage       = 2   // the command line is wrong
	exitRefused     = 3   // records that can't be migrated; nothing was written
	exitAllowed     = 4   // written without some records or fields: --allow, or salvage
	exitCannotCheck = 5   // a checking command could not check
	exitInterrupted = 130 // 128 + SIGINT, like in shells; nothing was written
)

// failure is an error with an exit status and a hint.
type failure struct {
	status int
	err    error
	hint   string // "" for the hint of err
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// errSaid stands for an error that was already printed.
var errSaid = errors.New("")

// usagef returns a usage error about a command, given by its path; "" for the program.
func usagef(command, format string, args ...any) error {
	help, err := "etcdshift --help", fmt.Errorf(format, args...)
	if command != "" {
		help, err = "etcdshift "+command+" --help", fmt.Errorf("%s: %w", command, err)
	}
	return &failure{exitUsage, err, fmt.Sprintf("%q shows its usage", help)}
}

func finish(err error, stderr io.Writer) int {
	if err == nil {
		return exitDone
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(stderr, "etcdshift: interrupted; nothing was written")
		return exitInterrupted
	}
	f := &failure{status: exitFailed}
	errors.As(err, &f)
	for line := range strings.Lines(err.Error()) { // each error of a run is one line
		fmt.Fprintln(stderr, "etcdshift:", render.Printable(strings.TrimSuffix(line, "\n")))
	}
	if hint := cmp.Or(f.hint, hintFor(err)); hint != "" {
		fmt.Fprintln(stderr, "hint:", render.Printable(hint)) // may contain text of a server
	}
	return f.status
}

func statusOf(err error) int {
	f := &failure{status: exitFailed}
	errors.As(err, &f)
	return f.status
}

// likeURL matches the beginning of a URL, but not of a Windows path.
var likeURL = pattern.New(`[[:alnum:]]{2,}:/`)

// hintFor returns the hint about err, "" for none: the hint of the program's own error, else that
// of a system error. A full disk for bucket objects has its own hint.
func hintFor(err error) string {
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	about := (*s3.Error)(nil)
	if full && strings.Contains(err.Error(), "s3://") && !(errors.As(err, &about) && about.Hint() != "") {
		return "objects are copied to, expanded and made in TMPDIR, else /tmp: it needs room for all of that; " +
			"a pod needs a larger emptyDir and ephemeral-storage"
	}
	return cmp.Or(finding.Hint(err), systemHint(err))
}

// systemHint returns the hint about a system error.
func systemHint(err error) string {
	if of := (*fs.PathError)(nil); errors.As(err, &of) && errors.Is(err, fs.ErrNotExist) && s3.Is(of.Path) {
		return "a file belongs here, not an object in a bucket: copy it first"
	}
	if errors.Is(err, fs.ErrNotExist) && likeURL().MatchString(err.Error()) {
		return "check the path: an object in a bucket is s3://BUCKET/KEY; no other URL is read or written"
	}
	for _, h := range []struct {
		is   error
		hint string
	}{
		{fs.ErrExist, "an existing file is never overwritten; name another, or move this one"},
		{fs.ErrNotExist, "check the path"},
		{fs.ErrPermission, "run as a user who may read the input and write to the folder of the output"},
		{syscall.ENOSPC, "the folder of the output needs a little more room than the size of the input"},
		{syscall.EDQUOT, "the folder of the output needs a little more room than the size of the input"},
		{syscall.EFBIG, "the file system, or a limit such as \"ulimit -f\", allows no file of this size"},
		{syscall.ENOTDIR, "check the path"},
	} {
		if errors.Is(err, h.is) {
			return h.hint
		}
	}
	return ""
}
