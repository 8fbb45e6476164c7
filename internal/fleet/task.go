package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/pattern"
	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/transform"
)

// Words of a command that stand for a snapshot and for the prefix of its results.
const (
	WordIn     = "{in}"
	WordResult = "{result}"
)

var (
	// ErrWords is the error for a command that does not fit a fleet.
	ErrWords = errors.New("the command does not fit a fleet")
	// ErrChanged is the error for a snapshot that differs from its entry in the list.
	ErrChanged = finding.WithLasting(errors.New("is not the file of the list any more"),
		"make a new list under another --name: results of what the snapshot was before do not count for it")
	// ErrOtherInput is the error for a report about a file other than the task's snapshot.
	ErrOtherInput = finding.WithLasting(errors.New("its report is about another file"),
		"move the report and its output away, or make a list under another --name")
	// ErrLost is the error for a report with a missing output.
	ErrLost = finding.WithLasting(errors.New("the output of its report is lost"),
		"remove the report and the rest of the output, and run the index again")
	// ErrDryRun is the error for the report of a dry run if the task is no dry run.
	ErrDryRun = finding.WithLasting(errors.New("its report is from a dry run"),
		"make a list under another --name, or remove the report")
)

// word matches placeholder words.
var word = pattern.New(`\{[A-Za-z_-]+\}`)

// Task is a command for one snapshot.
type Task struct {
	Snapshot Snapshot
	Last     string // the result that marks the task as done: the value of --report, otherwise the last result
	files    files  // of the place
	results  string // prefix of the result paths
	words    []string
	report   int  // index in words of the value of --report; 0 without
	dryRun   bool // --dry-run is among the words
}

// Task returns the task of an index.
func (f *Fleet) Task(index int, command []string) (*Task, error) {
	if index < 0 || index >= len(f.Snapshots) {
		return nil, fmt.Errorf("%w: there is no index %d: the list has 0 to %d", ErrWords, index, len(f.Snapshots)-1)
	}
	t := f.task(index)
	fill := strings.NewReplacer(WordIn, t.Snapshot.Path, WordResult, t.results)
	last, has, makes := "", false, false // last result; {in} is used; an output of this index
	for _, given := range command {
		for _, w := range word().FindAllString(given, -1) {
			if w != WordIn && w != WordResult && w != "{end}" { // {end} belongs to JSONPath
				return nil, fmt.Errorf("%w: %s is neither %s nor %s", ErrWords, w, WordIn, WordResult)
			}
		}
		has = has || strings.Contains(given, WordIn)
		switch flag, value, assigned := cutFlag(given); {
		case flag == "report" && assigned:
			t.words = append(t.words, "--report", fill.Replace(value))
			t.report, last = len(t.words)-1, value
			continue
		case flag == "report":
			given = "--report"
		case flag == "dry-run":
			on, _ := strconv.ParseBool(value) // the command itself rejects other values
			t.dryRun = on || !assigned
		case len(t.words) > 0 && t.words[len(t.words)-1] == "--report":
			t.report, last = len(t.words), given
		default:
			makes = makes || strings.HasPrefix(given, WordResult)
			if t.report == 0 && strings.Contains(given, WordResult) {
				last = given
			}
		}
		t.words = append(t.words, fill.Replace(given))
	}
	t.Last = fill.Replace(last)
	switch {
	case !has:
		return nil, fmt.Errorf("%w: no word of it has %s, the snapshot", ErrWords, WordIn)
	case !strings.HasPrefix(last, WordResult):
		return nil, fmt.Errorf("%w: nothing would tell that an index is done; give --report %s.json, or an output "+
			"that begins with %s",
			ErrWords, WordResult, WordResult)
	case !makes && !t.dryRun:
		return nil, fmt.Errorf("%w: each index would write the same output; give one that begins with %s",
			ErrWords, WordResult)
	}
	return t, nil
}

// task returns the task of an index, without a command.
func (f *Fleet) task(index int) *Task {
	s := f.Snapshots[index]
	return &Task{Snapshot: s, files: f.files, results: f.Results(s)}
}

// cutFlag splits a flag, with one or two dashes, at its equals sign; name is "" for other words.
func cutFlag(word string) (name, value string, assigned bool) {
	name, is := strings.CutPrefix(word, "-")
	if !is {
		return "", "", false
	}
	return strings.Cut(strings.TrimPrefix(name, "-"), "=")
}

// Done reports whether the last result exists. If the last result is a report, outcome is its
// outcome; a report about another snapshot or with a lost output is an error. For other results,
// outcome is "", and a snapshot that differs from the list is an error.
func (t *Task) Done(ctx context.Context) (done bool, outcome transform.Outcome, err error) {
	if _, err := t.files.stat(ctx, t.Last); errors.Is(err, fs.ErrNotExist) {
		return false, "", nil
	} else if err != nil {
		return false, "", err
	}
	if t.report == 0 { // the file has no etag of its snapshot
		err := t.Check(ctx)
		return err == nil, "", err
	}
	found, err := t.readReport(ctx, t.Last)
	if err == nil && found.Outcome == transform.Planned && !t.dryRun {
		err = ErrDryRun
	}
	if err != nil {
		return false, "", fmt.Errorf("%s: %w", t.Last, err)
	}
	return true, found.Outcome, nil
}

// Check returns an error if the snapshot is missing or differs from the list.
func (t *Task) Check(ctx context.Context) error {
	now, err := t.files.stat(ctx, t.Snapshot.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w: nothing is there", t.Snapshot.Path, ErrChanged)
	case err != nil:
		return err
	case now.ETag != t.Snapshot.ETag:
		return fmt.Errorf("%s: %w: its etag is %s, in the list %s", t.Snapshot.Path, ErrChanged, now.ETag,
			t.Snapshot.ETag)
	}
	return nil
}

// Run calls run with the command, with its report in a scratch file. It publishes the report if
// keep returns true for the report's outcome, and returns the outcome, "" without a report. If the
// snapshot was replaced during the run, Run returns an error and publishes no report.
func (t *Task) Run(
	ctx context.Context, run func(words []string) error, keep func(transform.Outcome, error) bool,
) (transform.Outcome, error) {
	if t.report == 0 {
		if err := run(t.words); err != nil {
			return "", err
		}
		return "", t.Check(ctx)
	}
	folder, err := os.MkdirTemp("", "etcdshift-fleet-*")
	if err != nil {
		return "", fmt.Errorf("%w: %w", publish.ErrScratch, err)
	}
	defer os.RemoveAll(folder)
	words, scratch := slices.Clone(t.words), filepath.Join(folder, "report.json")
	words[t.report] = scratch
	ended := run(words)
	found, err := readReport(ctx, files{}, scratch)
	if err != nil { // no report after a usage error
		return "", cmp.Or(ended, err)
	}
	if !keep(found.Outcome, ended) {
		return found.Outcome, ended
	}
	if err = t.Check(ctx); err == nil {
		err = t.publish(ctx, scratch)
	}
	if err == nil {
		return found.Outcome, ended
	}
	if ended != nil { // %v: only err decides about a retry
		err = fmt.Errorf("%w; the run: %v", err, ended)
	}
	return "", err
}

// publish writes the report from scratch, with the etag of the snapshot as its first field.
func (t *Task) publish(ctx context.Context, scratch string) error {
	f, err := os.Open(scratch)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(1, io.SeekStart); err != nil { // after the bracket
		return err
	}
	tag, err := json.Marshal(t.Snapshot.ETag)
	if err != nil {
		return err
	}
	if err := t.files.write(ctx, t.Last, io.MultiReader(strings.NewReader(fmt.Sprintf("{\n  \"etag\": %s,", tag)),
		f)); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}
