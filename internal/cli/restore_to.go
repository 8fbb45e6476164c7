package cli

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"go.etcd.io/etcd/client/pkg/v3/types"

	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/restore"
	"github.com/etcdshift/etcdshift/internal/s3"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// restoreToFlag is the flag that restores the output of a run.
const restoreToFlag = "restore-to"

// noOut in place of OUT keeps no file: all members are restored.
const noOut = "-"

// restoreTo restores members from the output of a run; nil without the flag.
type restoreTo struct {
	*restore.Prepared
	names []string // by data directory; "" for the only member
	alone bool     // no file of the output is kept
}

// prepareRestoreTo checks the data directories of the flag, before the input is read.
func (m migration) prepareRestoreTo(c *cli.Context, o *transform.Options) (*restoreTo, error) {
	dirs := c.StringSlice(restoreToFlag)
	switch {
	case len(dirs) == 0 && o.Out == noOut:
		return nil, notStdout(c)
	case len(dirs) == 0:
		return nil, nil
	case s3.Is(o.Out):
		return nil, usagef(commandPath(c), "--%s takes a local file as OUT, or \"-\" to keep no file", restoreToFlag)
	}
	to := &restoreTo{alone: o.Out == noOut}
	ro := restore.Options{Token: defaultToken, Bump: o.BumpRevision, Verified: true}
	for _, text := range dirs {
		name, dir, named := strings.Cut(text, "=")
		if !named || strings.ContainsAny(name, `/\`) {
			name, dir = "", text
		}
		if dir == "" || slices.Contains(to.names, name) {
			return nil, usagef(commandPath(c), "--%s is %q; it takes DIR for the only member, or NAME=DIR once for "+
				"each member", restoreToFlag, text)
		}
		to.names = append(to.names, name)
		ro.Members = append(ro.Members, restore.Member{DataDir: dir})
	}
	var err error
	to.Prepared, err = restore.Prepare(ro)
	switch {
	case errors.Is(err, restore.ErrHasMember):
		return nil, &failure{exitRefused, fmt.Errorf("--%s: %w", restoreToFlag, err),
			"name a new folder, or restore OUT with \"etcdshift restore --move-aside\""}
	case err != nil:
		return nil, restoreFailure(fmt.Errorf("--%s: %w", restoreToFlag, err))
	}
	if to.alone {
		o.Out = filepath.Join(to.Scratch(), "snapshot.db")
	}
	o.Restores = func(members []snapshot.Member) ([]string, error) {
		if m.Builds { // OUT has no members
			members = nil
		}
		return to.choose(c, members)
	}
	return to, nil
}

// choose finds the members to restore among those of the snapshot.
func (to *restoreTo) choose(c *cli.Context, stored []snapshot.Member) ([]string, error) {
	known, cluster, _ := transform.Restorable(stored)
	if len(known) == 0 {
		known = []snapshot.Member{{Name: cmp.Or(to.names[0], defaultMember), PeerURLs: []string{defaultPeer}}}
		cluster = known[0].Name + "=" + defaultPeer
	}
	if _, err := types.NewURLsMap(cluster); err != nil {
		return nil, fmt.Errorf("the members in the snapshot: %w", err)
	}
	if to.alone && len(known) > len(to.names) {
		err := fmt.Errorf("the snapshot has %d members, and --%s names %d: with \"-\" as OUT no file is left "+
			"for the others", len(known), restoreToFlag, len(to.names))
		return nil, &failure{exitUsage, err, "name a file as OUT, or give NAME=DIR for each member"}
	}
	to.Cluster = cluster
	for i, name := range to.names {
		if name == "" && len(known) == 1 {
			name = known[0].Name
		}
		at := slices.IndexFunc(known, func(m snapshot.Member) bool { return m.Name == name })
		if at < 0 {
			names := stream.Mapped(known, func(m snapshot.Member) string { return render.Printable(m.Name) })
			return nil, usagef(commandPath(c), "--%s is %q; it takes NAME=DIR with a member of the snapshot: %s",
				restoreToFlag, c.StringSlice(restoreToFlag)[i], strings.Join(names, ", "))
		}
		to.Members[i].Name, to.Members[i].PeerURLs, to.names[i] = name, known[at].PeerURLs, name
	}
	return to.names, nil
}

// run restores the members after a run that wrote its output.
func (to *restoreTo) run(c *cli.Context, out string, r *transform.Report) (err error) {
	if to == nil {
		return nil
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if r.Output == nil {
		return nil
	}
	phases := progress(c)
	defer phases.End()
	to.Phase = func(name string) { phases.Phase(r.Command + ": " + name) }
	s, err := snapshot.Open(c.Context, out, snapshot.Config{})
	if err != nil {
		return err
	}
	defer s.Close()
	result, err := to.Prepared.Run(c.Context, s)
	if err != nil {
		return err
	}
	if to.alone {
		r.Output.Path = to.Members[0].DataDir
	}
	warn(c, restoreWarnings(result)...)
	r.Restored = restoredSection{result}
	return nil
}

// restoredSection is the part of a report about members restored by --restore-to.
type restoredSection struct {
	Restored *restore.Result `json:"restored,omitempty"` // by --restore-to
}

// Tables returns a line for each member.
func (s restoredSection) Tables(transform.Outcome) []transform.Table {
	t := transform.Table{Title: "restored:"}
	for _, m := range s.Restored.Members {
		t.Rows = append(t.Rows, []any{fmt.Sprintf("%s: member %s, revision %d, hashkv %s", m.DataDir, m.Name,
			s.Restored.Revision, s.Restored.HashKV)})
	}
	return []transform.Table{t}
}
