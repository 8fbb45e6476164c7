package doctor

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/etcdshift/etcdshift/snapshot"
)

// The quotas of etcd (server/storage/quota.go): the one it has unless it is told otherwise, and the largest it suggests.
const (
	DefaultQuota   = 2 << 30 // bytes
	SuggestedQuota = 8 << 30
)

func (d *doctor) checkDigest(ctx context.Context) error {
	sum, err := d.snapshot.Digest(ctx)
	if err == nil && !sum.Present {
		d.raise(nil, codeNoDigest.Because("a database file as a member has it (member/snap/db): nothing tells whether it was copied whole, and the WAL beside it may hold newer writes"))
	}
	return err
}

func (d *doctor) checkAlarms(ctx context.Context) error {
	raised, err := d.snapshot.Alarms(ctx)
	alarms := map[snapshot.Alarm]bool{}
	for _, r := range raised {
		alarms[r.Kind] = true
	}
	for _, alarm := range slices.Sorted(maps.Keys(alarms)) {
		switch alarm {
		case snapshot.AlarmNoSpace:
			d.raise(nil, codeAlarmNoSpace.Because("a member has raised it, and a restore keeps it: the restored etcd refuses all writes"))
		case snapshot.AlarmCorrupt:
			d.raise(nil, codeAlarmCorrupt.Because("a member was found to hold other data than the rest, and a restore keeps the alarm: the restored etcd refuses requests"))
		}
	}
	return err
}

// checkVersions compares the releases that the file names with the one to restore into: a server that is older than either of them
// does not start on it.
func (d *doctor) checkVersions(ctx context.Context) error {
	st, err := d.snapshot.Status(ctx)
	if err != nil {
		return err
	}
	needed := st.StorageVersion
	if before(needed, st.ClusterVersion) {
		needed = st.ClusterVersion
	}
	switch {
	case needed == "":
	case d.options.Etcd != "" && before(d.options.Etcd, needed):
		d.raise(nil, codeEtcdTooOld.Because("it was written by a cluster at version %s (storage version %s); etcd %s does not start on it", st.ClusterVersion, dash(st.StorageVersion), d.options.Etcd))
	case d.options.Etcd == "":
		d.raise(nil, codeEtcdVersion.Because("it was written by a cluster at version %s (storage version %s)", st.ClusterVersion, dash(st.StorageVersion)))
	}
	return nil
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// before compares releases by their first two numbers, which is what etcd compares.
func before(a, b string) bool {
	x, y := release(a), release(b)
	return slices.Compare(x[:], y[:]) < 0
}

func release(s string) (out [2]int) {
	for i, part := range strings.SplitN(strings.TrimPrefix(s, "v"), ".", 3) {
		if i < len(out) {
			out[i], _ = strconv.Atoi(part) // what is no number counts as none
		}
	}
	return out
}

// checkQuota compares the size of the database, which is what its file has on a member, with the quota.
func (d *doctor) checkQuota(context.Context) error {
	space := d.snapshot.Space()
	size, quota := int64(space.Pages)*int64(space.PageSize), d.options.Quota
	switch {
	case quota > 0 && size >= quota:
		d.raise(nil, codeOverQuota.Because("the database has %d bytes, the quota is %d: the first write raises the alarm NOSPACE", size, quota))
	case quota > 0 && size >= quota/5*4:
		d.raise(nil, codeNearQuota.Because("the database has %d bytes, the quota is %d", size, quota))
	case quota > 0:
	case size >= SuggestedQuota:
		d.raise(nil, codeNearQuota.Because("the database has %d bytes: more than the %d that etcd suggests as the largest quota", size, int64(SuggestedQuota)))
	case size >= DefaultQuota:
		d.raise(nil, codeNearQuota.Because("the database has %d bytes: an etcd without --quota-backend-bytes, whose quota is %d, refuses all writes", size, int64(DefaultQuota)))
	case size >= DefaultQuota/5*4:
		d.raise(nil, codeNearQuota.Because("the database has %d bytes; the quota of an etcd without --quota-backend-bytes is %d", size, int64(DefaultQuota)))
	}
	return nil
}
