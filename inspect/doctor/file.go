package doctor

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/etcdshift/etcdshift/snapshot"
)

// The quotas of etcd in bytes (server/storage/quota.go): the default, and the largest it suggests.
const (
	defaultQuota   = 2 << 30
	suggestedQuota = 8 << 30
)

func (d *doctor) checkDigest(ctx context.Context) error {
	sum, err := d.snapshot.Digest(ctx)
	if err == nil && !sum.Present {
		d.raise(nil, codeNoDigest.Because(
			"a database file as a member has it (member/snap/db): nothing shows whether it was copied whole, and the WAL beside it may hold newer writes"))
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
			d.raise(nil, codeAlarmCorrupt.Because(
				"a member was found to hold other data than the rest, and a restore keeps the alarm: the restored etcd refuses requests"))
		}
	}
	return err
}

// checkVersions compares cluster and storage version of the file with the release to restore into.
// A server older than either does not start.
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
		d.raise(nil, codeEtcdTooOld.Because(
			"it was written by a cluster at version %s (storage version %s); etcd %s does not start on it",
			st.ClusterVersion, cmp.Or(st.StorageVersion, "-"), d.options.Etcd))
	case d.options.Etcd == "":
		d.raise(nil, codeEtcdVersion.Because("it was written by a cluster at version %s (storage version %s)", st.ClusterVersion, cmp.Or(st.StorageVersion, "-")))
	}
	return nil
}

// before compares releases by their first two numbers, as etcd does.
func before(a, b string) bool {
	x, y := release(a), release(b)
	return slices.Compare(x[:], y[:]) < 0
}

func release(s string) (out [2]int) {
	for i, part := range strings.SplitN(strings.TrimPrefix(s, "v"), ".", 3) {
		if i < len(out) {
			out[i], _ = strconv.Atoi(part) // no number counts as 0
		}
	}
	return out
}

// checkQuota compares the size of the database, as a file on a member, with the quota.
func (d *doctor) checkQuota(context.Context) error {
	space := d.snapshot.Space()
	size, quota := int64(space.Pages)*int64(space.PageSize), d.options.Quota
	switch {
	case quota > 0 && size >= quota:
		d.raise(nil, codeOverQuota.Because("the database has %d bytes, the quota is %d: the first write raises the alarm NOSPACE", size, quota))
	case quota > 0 && size >= quota/5*4:
		d.raise(nil, codeNearQuota.Because("the database has %d bytes, the quota is %d", size, quota))
	case quota > 0:
	case size >= suggestedQuota:
		d.raise(nil, codeNearQuota.Because("the database has %d bytes: more than the %d that etcd suggests as the largest quota", size, int64(suggestedQuota)))
	case size >= defaultQuota:
		d.raise(nil, codeNearQuota.Because(
			"the database has %d bytes: an etcd without --quota-backend-bytes, whose quota is %d, refuses all writes", size, int64(defaultQuota)))
	case size >= defaultQuota/5*4:
		d.raise(nil, codeNearQuota.Because("the database has %d bytes; the quota of an etcd without --quota-backend-bytes is %d", size, int64(defaultQuota)))
	}
	return nil
}
