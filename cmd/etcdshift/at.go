package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/snapshot"
)

// moment is a revision, or a time, of a flag.
type moment struct {
	revision int64
	time     time.Time // zero for a revision
}

// readMoment reads a flag; nil where it is not given.
func readMoment(c *cli.Context, flag string) (*moment, error) {
	given := c.String(flag)
	if given == "" {
		return nil, nil
	}
	if revision, err := strconv.ParseInt(given, 10, 64); err == nil {
		return &moment{revision: revision}, nil
	}
	t, err := time.Parse(time.RFC3339, given)
	if err != nil {
		return nil, usagef(commandPath(c), "--%s is %q; it takes a revision, or a time such as 2026-11-20T20:50:00Z", flag, given)
	}
	return &moment{time: t}, nil
}

// stateAt is the state that --at asked for.
type stateAt struct {
	Revision int64            `json:"revision"`       // the newest that is not known to be later than the time asked for
	Time     *compare.Bracket `json:"time,omitempty"` // when it was written, where a time was asked for and something is known
	Next     *compare.Bracket `json:"next,omitempty"` // when the revision behind it was written
}

// last is the last revision that is not known to be later than the moment.
func (m *moment) last(clock *compare.Clock) int64 {
	if m.time.IsZero() {
		return m.revision
	}
	return clock.Last(m.time)
}

// readAt makes the reader one of the revision of --at, and says what is known of its time.
func (o *opened) readAt(c *cli.Context) error {
	at, err := readMoment(c, "at")
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
			return &snapshot.FileError{Path: o.Snapshot().Path(), Err: fmt.Errorf("%w: the state at %s; the file keeps revision %d, written %s, and later ones",
				snapshot.ErrCompacted, at.time.Format(time.RFC3339), oldest, aboutText(clock, oldest))}
		}
		o.sayAt(c, clock, at.revision, newest)
		o.at = &stateAt{Revision: at.revision, Time: clock.At(at.revision)}
		if at.revision < newest {
			o.at.Next = clock.At(at.revision + 1)
		}
		if at.revision == newest { // without it, a reader is faster
			return nil
		}
	} else {
		o.at = &stateAt{Revision: at.revision}
	}
	o.Reader = o.At(at.revision)
	return nil
}

// sayAt says when a revision and the next one were written.
func (o *opened) sayAt(c *cli.Context, clock *compare.Clock, revision, newest int64) {
	if c.Bool("quiet") {
		return
	}
	next := "it is the last one of the file"
	if revision < newest {
		next = "the next one " + aboutText(clock, revision+1)
	}
	fmt.Fprintf(c.App.ErrWriter, "the state at revision %d, written %s; %s\n", revision, aboutText(clock, revision), next)
}

// aboutText tells the time of a revision.
func aboutText(clock *compare.Clock, revision int64) string {
	if at := clock.At(revision); at != nil {
		return timeText(*at)
	}
	return "at an unknown time"
}
