package transform

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	inputfile "github.com/etcdshift/etcdshift/internal/input"
)

// Spec describes a transform as a command: its place, help, flags and codes of problems.
type Spec struct {
	Group    string // of commands: GroupMigrate, GroupKCP, GroupPolicy; GroupNone for none
	Name     string // of the command
	Usage    string // one line
	Examples string // command lines, one a line
	Text     string // paragraphs of the help
	ArgsText string // arguments in the help; "" for IN OUT and Rest
	Rest     string // arguments after IN OUT: "TYPE[/NAME] [NAME...]"; in brackets optional, "..." for more
	Builds   bool   // the output is a new file instead of a changed copy of the input
	Alone    bool   // no step of a plan: the command checks that the output has all other records of the input
	Of       []Spec // the commands that run as steps, with their codes; nil for none

	// The help omits unused flags: --time for a command that creates no objects; flags of a
	// restore; flags about values.
	Creates       bool
	NotForRestore bool // the output is not for a cluster
	Unread        bool // values are copied unread

	// Arguments names the arguments up to OUT; nil for IN and OUT. IN is the one before OUT, or
	// with InputFirst the first one.
	Arguments  func(a *Args) []string
	InputFirst bool

	Flags    []Flag
	Codes    []*finding.Code   // of problems in its reports
	Settles  map[string]string // by code, another remedy than --allow
	Sections []Section         // of its reports, empty
	Appendix Section           // of its reports, empty; nil for none

	// New makes the transform from the command line; mistakes in the command line are errors of
	// [Usagef].
	New func(ctx context.Context, a *Args) (Transform, error)
}

// Command returns the words of the command: "migrate calico-v3".
func (s *Spec) Command() string { return strings.TrimSpace(s.Group + " " + s.Name) }

// AllCodes returns the codes of problems that the command reports, including the codes of its
// steps.
func (s *Spec) AllCodes() []*finding.Code {
	codes := slices.Clone(s.Codes)
	for _, of := range s.Of {
		codes = append(codes, of.Codes...)
	}
	return codes
}

// RunCodes returns the codes that a run of the command may report besides AllCodes. A command with
// Builds stages no values.
func (s *Spec) RunCodes() []*finding.Code {
	codes := []*finding.Code{CodeRawFile, CodeCompressed, CodeDataDir, CodeFreeList}
	if !s.NotForRestore {
		codes = append(codes, CodeBumpTooLarge)
	}
	if !s.Builds {
		codes = append(codes, CodeLargeValue)
	}
	return codes
}

// Unused returns the common flags that have no effect on the command.
func (s *Spec) Unused() (flags []string) {
	if !s.Creates && !slices.ContainsFunc(s.Of, func(of Spec) bool { return of.Creates }) {
		flags = append(flags, "time")
	}
	if s.NotForRestore {
		flags = append(flags, "bump-revision")
	}
	if s.Unread {
		flags = append(flags, "diff", "show-secrets", "prefix", "encryption-config")
	}
	return flags
}

// CountArguments returns the least and the largest number of arguments for the words of a usage: a
// word in brackets is optional, a word that ends with "..." stands for any number.
func CountArguments(words []string) (least, most int) {
	most = len(words)
	for _, word := range words {
		if word[0] != '[' {
			least++
		}
		if strings.HasSuffix(strings.TrimSuffix(word, "]"), "...") {
			most = math.MaxInt
		}
	}
	return least, most
}

// Groups of commands.
const (
	GroupMigrate = "migrate"
	GroupKCP     = "kcp"
	GroupPolicy  = "policy"
	GroupNone    = ""
)

// Flag is an option of a transform's command.
type Flag struct {
	Name     string
	Short    string   // one letter; "" for none
	Category string   // heading in the help; "" for none
	Usage    string   // one line; the word in `backquotes` stands for the value
	Choices  []string // values that the flag takes; nil for any
	// Bare is the value of a flag with Choices without an attached "=VALUE", as in kubectl; the
	// next word is then an argument. If Bare is "", the flag takes the next word as its value.
	Bare string
	// Default is the value without the flag, and sets the type: string, bool, time.Duration, or
	// []string for a repeatable flag. nil stands for "".
	Default any
}

// Values are the flags of a command line, by name.
type Values interface {
	IsSet(flag string) bool
	String(flag string) string
	StringSlice(flag string) []string
	Bool(flag string) bool
	Duration(flag string) time.Duration
}

// Args is a command line.
type Args struct {
	Values
	Arguments []string // all; for New only the arguments besides IN, OUT and Rest
	In, Out   string
	Rest      []string // the arguments after the output
	Prefixes  []string // of --prefix; New may set other ones for the input
	// Open opens one more snapshot, with the EncryptionConfiguration of the named flag. The
	// snapshot is closed after the run.
	Open func(ctx context.Context, path, configFlag string) (*File, error)
	// Small, if set, reads the small files of flags and arguments; name is the name of the flag or
	// argument.
	Small func(ctx context.Context, name, path string) ([]byte, error)
}

// File is a snapshot that a transform reads besides its input.
type File struct {
	*inspect.Reader
	Decrypter inspect.Decrypter // nil without an EncryptionConfiguration
}

// Read runs fn, which reads the file, and waits for the file's digest. Faults of the mapped file
// are errors.
func (f *File) Read(ctx context.Context, fn func() error) error {
	if err := f.Snapshot().Guard(fn); err != nil {
		return err
	}
	_, err := f.Snapshot().Digest(ctx)
	return err
}

// ReadFile reads the small file of a flag; nil without the flag.
func (a *Args) ReadFile(ctx context.Context, flag string) ([]byte, error) {
	if !a.IsSet(flag) {
		return nil, nil
	}
	return a.small(ctx, "--"+flag, a.String(flag))
}

// ReadArgument reads the small file of an argument before the input. An empty file is a mistake in
// the command line.
func (a *Args) ReadArgument(ctx context.Context, i int, name string) ([]byte, error) {
	text, err := a.small(ctx, name, a.Arguments[i])
	if errors.Is(err, inputfile.ErrEmpty) {
		err = Usagef("%v", err)
	}
	return text, err
}

func (a *Args) small(ctx context.Context, name, path string) ([]byte, error) {
	if a.Small != nil {
		return a.Small(ctx, name, path)
	}
	return inputfile.ReadFlag(ctx, name, path)
}

// UsageError is a mistake in the command line.
type UsageError struct{ reason string }

func (e *UsageError) Error() string { return e.reason }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...)}
}
