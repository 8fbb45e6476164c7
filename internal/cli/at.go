package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/snapshot"
)

// moment is a revision or a time given by a flag.
type moment struct {
	revision int64
	time     time.Time // zero for a revision
}

// timeForms describes the forms of a time, for the help of flags.
const timeForms = "RFC 3339, a UTC date and time (2026-11-25 14:00), or 1h: one hour before the newest time in the " +
	"snapshot"

// parseTime parses a time: RFC 3339, or a UTC date with an optional time of day.
func parseTime(text string) (t time.Time, err error) {
	layouts := []string{time.DateOnly, "2006-01-02 15:04", time.DateTime, "2006-01-02T15:04",
		"2006-01-02T15:04:05", time.RFC3339}
	for _, layout := range layouts {
		if t, err = time.Parse(layout, text); err == nil {
			break
		}
	}
	return t, err
}

// parseBack parses a duration such as 90m, 1h or 2d.
func parseBack(text string) (time.Duration, error) {
	if days, is := strings.CutSuffix(text, "d"); is {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}

// readMoment reads a flag; nil if absent. A duration counts back from the newest time in the
// snapshot of r, never from the clock.
func readMoment(c *cli.Context, flag string, r *inspect.Reader) (*moment, error) {
	given := c.String(flag)
	if given == "" {
		return nil, nil
	}
	if revision, err := strconv.ParseInt(given, 10, 64); err == nil {
		if revision < 1 && flag == "at" {
			return nil, usagef(commandPath(c), "--%s takes a revision from 1", flag)
		}
		newest, err := r.Snapshot().Revision(c.Context)
		if revision > newest && err == nil {
			const text = "--%s %s is read as a revision, and the newest one is %d; a date is written 2026-11-26"
			warn(c, fmt.Sprintf(text, flag, given, newest))
		}
		return &moment{revision: revision}, err
	}
	if t, err := parseTime(given); err == nil {
		return &moment{time: t}, nil
	}
	back, err := parseBack(given)
	if err != nil || back < 0 {
		return nil, usagef(commandPath(c), "--%s is %q; it takes a revision, or a time such as 2026-11-20T20:50:00Z, "+
			"2026-11-20, "+
			"\"2026-11-20 20:50\", or 1h (before the newest time in the snapshot)", flag, given)
	}
	newest, err := inspect.NewestTime(c.Context, r)
	if err == nil && newest.IsZero() {
		err = fmt.Errorf("--%s %s counts from the newest time in the snapshot, and no object has a time; "+
			"give a revision", flag, given)
	}
	return &moment{time: newest.Add(-back)}, err
}

// stateAt is the state selected by --at.
type stateAt struct {
	// the newest revision not known to be later than the requested time
	Revision int64 `json:"revision"`
	// time of the revision, for a requested time, if known
	Time *compare.Bracket `json:"time,omitempty"`
	Next *compare.Bracket `json:"next,omitempty"` // time of the next revision
}

// last returns the last revision not known to be later than the moment.
func (m *moment) last(clock *compare.Clock) int64 {
	if m.time.IsZero() {
		return m.revision
	}
	return clock.Last(m.time)
}

// readAt moves the reader to the revision of --at, and prints the known facts about its time.
func (o *opened) readAt(c *cli.Context) error {
	at, err := readMoment(c, "at", o.Reader)
	if at == nil || err != nil {
		return err
	}
	if !at.time.IsZero() {
		clock := &compare.Clock{}
		if err := clock.Read(c.Context, o.Reader); err != nil {
			return err
		}
		oldest, newest, err := o.Snapshot().Kept(c.Context)
		if err != nil {
			return err
		}
		at.revision = min(at.last(clock), newest)
		if at.revision < oldest {
			err := fmt.Errorf("%w: the state at %s; the file keeps %s",
				snapshot.ErrCompacted, at.time.Format(time.RFC3339), keptText(clock, oldest, newest))
			return &snapshot.FileError{Path: o.Snapshot().Path(), Err: err}
		}
		o.sayAt(c, clock, at, keptText(clock, oldest, newest), newest)
		o.at = &stateAt{Revision: at.revision, Time: clock.At(at.revision)}
		if at.revision < newest {
			o.at.Next = clock.At(at.revision + 1)
		}
		if at.revision == newest { // the current state; a reader without a revision is faster
			return nil
		}
	} else {
		o.at = &stateAt{Revision: at.revision}
	}
	o.Reader = o.At(at.revision)
	return nil
}

// readState returns the reader at the revision of --revision or --at.
func (o *opened) readState(c *cli.Context) (*inspect.Reader, error) {
	if c.IsSet("revision") {
		return o.At(c.Int64("revision")), nil
	}
	err := o.readAt(c)
	return o.Reader, err
}

// sayAt prints the times of a revision and its successor, or that the file has no times this early.
func (o *opened) sayAt(c *cli.Context, clock *compare.Clock, at *moment, kept string, newest int64) {
	if c.Bool("quiet") {
		return
	}
	revision := at.revision
	if is := clock.At(revision); is == nil || is.NotBefore.IsZero() {
		fmt.Fprintf(c.App.ErrWriter, "no object has a time up to %s: "+
			"shown is the state at revision %d, which may be later; the file keeps %s\n",
			at.time.Format(time.RFC3339), revision, kept)
		return
	}
	next := "it is the last one of the file"
	if revision < newest {
		next = "the next one " + aboutText(clock, revision+1)
	}
	fmt.Fprintf(c.App.ErrWriter, "the state at revision %d, written %s; %s\n", revision,
		aboutText(clock, revision), next)
}

// aboutText describes the time of a revision.
func aboutText(clock *compare.Clock, revision int64) string {
	if at := clock.At(revision); at != nil {
		return timeText(*at)
	}
	return "at an unknown time"
}
