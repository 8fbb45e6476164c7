package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/redact"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// Limits of a report: for 200,000 objects it has some 100 MB of short values.
const (
	mostReport = 1 << 30
	mostValue  = 4 << 20 // bytes between two tokens
	mostDepth  = 1000
	mostCodes  = 500
	mostError  = 2000 // bytes kept
	mostPath   = 5000 // bytes of an output's path and SHA-256
)

// ErrNotReport is the error for a file that is not a report.
var ErrNotReport = finding.WithLasting(errors.New("is no report, as --report writes it"), "")

// Problems counts the problems of a code.
type Problems struct {
	Code  string        `json:"code"`
	Level finding.Level `json:"level"`
	Count int           `json:"count"`
}

// found has the parts of a report used in a summary.
type found struct {
	ETag     string // of the snapshot in the list; see Task.Run
	Outcome  transform.Outcome
	Error    string
	Input    snapshot.FileInfo
	Output   *snapshot.FileInfo
	Changes  transform.Changes
	Problems []Problems // by code
}

// readReport reads the report at a path, and checks that the report concerns the snapshot and its
// output exists.
func (t *Task) readReport(ctx context.Context, path string) (*found, error) {
	r, err := readReport(ctx, t.files, path)
	if err == nil {
		err = r.checkInput(t.Snapshot)
	}
	if err == nil {
		err = r.checkOutput(ctx, t.files, t.results)
	}
	return r, err
}

// checkInput returns an error if a report concerns another snapshot.
func (r *found) checkInput(s Snapshot) error {
	switch {
	case r.Input.Path != s.Path:
		return fmt.Errorf("%w: %.300q, the list has %q", ErrOtherInput, r.Input.Path, s.Path)
	case r.ETag != s.ETag:
		return fmt.Errorf("%w: of etag %.100q, the list has %q", ErrOtherInput, r.ETag, s.ETag)
	}
	return nil
}

// checkOutput returns ErrLost if a report's output is a result that is missing or has another size.
func (r *found) checkOutput(ctx context.Context, in files, results string) error {
	if r.Output == nil || !strings.HasPrefix(r.Output.Path, results) {
		return nil
	}
	switch now, err := in.stat(ctx, r.Output.Path); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %q does not exist", ErrLost, r.Output.Path)
	case err != nil:
		return err
	case now.Bytes != r.Output.Bytes:
		return fmt.Errorf("%w: %q has %d bytes, and had %d", ErrLost, r.Output.Path, now.Bytes, r.Output.Bytes)
	}
	return nil
}

// readReport reads the report at a path, and keeps counts instead of lists.
func readReport(ctx context.Context, in files, path string) (*found, error) {
	f, err := in.open(ctx, path, mostReport)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := parseReport(f)
	return r, cmp.Or(ctx.Err(), err)
}

// parseReport reads a report token by token.
func parseReport(from io.Reader) (*found, error) {
	l := &leash{from: from, total: mostReport}
	p := parser{Decoder: json.NewDecoder(l), leash: l, problems: map[string]*Problems{}}
	if err := p.report(); l.failed != nil {
		return nil, l.failed
	} else if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrNotReport, reason(err))
	}
	r := p.found // without the parser's buffers
	if r.Output != nil && len(r.Output.Path)+len(r.Output.SHA256) > mostPath {
		return nil, fmt.Errorf("%w: the path of its output is too long", ErrNotReport)
	}
	for _, code := range slices.Sorted(maps.Keys(p.problems)) {
		r.Problems = append(r.Problems, *p.problems[code])
	}
	r.ETag = strings.Clone(r.ETag[:min(len(r.ETag), mostError)])
	r.Error = redact.NewShared().Text(r.Error)
	r.Error = strings.Clone(r.Error[:min(len(r.Error), mostError)]) // frees the rest
	return &r, nil
}

// leash stops reading a report at a too long value.
type leash struct {
	from        io.Reader
	left, total int64 // remaining bytes of the value and of the report
	failed      error // error of from
}

// Read implements [io.Reader].
func (l *leash) Read(b []byte) (int, error) {
	if l.left <= 0 || l.total <= 0 {
		return 0, errors.New("it is too long, or one of its values")
	}
	n, err := l.from.Read(b)
	l.left, l.total = l.left-int64(n), l.total-int64(n)
	if err != nil && err != io.EOF {
		l.failed = err
	}
	return n, err
}

// parser parses a report token by token.
type parser struct {
	*json.Decoder
	leash    *leash
	found    found
	problems map[string]*Problems // by code
}

// next returns the next token: a scalar or a bracket.
func (p *parser) next() (json.Token, error) {
	p.leash.left = mostValue
	return p.Token()
}

// take decodes the next value, which must be short.
func (p *parser) take(into any) error {
	p.leash.left = mostValue
	return p.Decode(into)
}

// report parses the whole document.
func (p *parser) report() error {
	if err := p.open('{'); err != nil {
		return err
	}
	apiVersion, kind := "", ""
	fields := map[string]any{"etag": &p.found.ETag, "apiVersion": &apiVersion, "kind": &kind,
		"outcome": &p.found.Outcome, "error": &p.found.Error,
		"input": &p.found.Input, "output": &p.found.Output, "changes": &p.found.Changes}
	for p.More() {
		name, err := p.next()
		if err != nil {
			return err
		}
		switch into := fields[name.(string)]; { // the decoder accepts only string names
		case into != nil:
			err = p.take(into)
		case name == "problems":
			err = p.list()
		default:
			err = p.skip()
		}
		if err != nil {
			return fmt.Errorf("%.40q: %w", name, err)
		}
	}
	if _, err := p.next(); err != nil {
		return err
	}
	outcomes := []transform.Outcome{transform.Written, transform.Unchanged, transform.Planned, transform.Refused,
		transform.Failed}
	switch _, err := p.next(); {
	case err != io.EOF:
		return errors.New("something stands behind it")
	case apiVersion != transform.APIVersion || kind != "Report" || !slices.Contains(outcomes, p.found.Outcome):
		return fmt.Errorf("apiVersion %.40q, kind %.40q, outcome %.40q", apiVersion, kind, p.found.Outcome)
	}
	return nil
}

// open reads an opening bracket.
func (p *parser) open(bracket json.Delim) error {
	token, err := p.next()
	if err == nil && token != bracket {
		err = fmt.Errorf("not a %s", bracket)
	}
	return err
}

// list reads the list of problems and counts them by code.
func (p *parser) list() error {
	if err := p.open('['); err != nil {
		return err
	}
	for p.More() {
		var one struct{ Code, Level string }
		if err := p.take(&one); err != nil {
			return err
		}
		count := p.problems[one.Code]
		if count == nil {
			if len(p.problems) == mostCodes || len(one.Code) > 100 {
				return errors.New("too many codes, or too long ones")
			}
			count = &Problems{Code: one.Code, Level: finding.Warning}
			p.problems[one.Code] = count
		}
		if count.Count++; one.Level != string(finding.Warning) { // including levels of newer programs
			count.Level = finding.Error
		}
	}
	_, err := p.next()
	return err
}

// skip skips a value of any size.
func (p *parser) skip() error {
	for depth := 0; ; {
		token, err := p.next()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		switch {
		case depth == 0:
			return nil
		case depth > mostDepth:
			return errors.New("nested too deep")
		}
	}
}
