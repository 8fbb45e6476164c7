package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/snapshot"
)

// The quotas of etcd (server/storage/quota.go).
const (
	defaultQuota   int64 = 2 << 30 // bytes
	suggestedQuota int64 = 8 << 30 // as the largest
)

// About the file.
var (
	CodeDamaged      = finding.Lookup("damaged")
	codeNoLiveKey    = finding.Lookup("no-live-key")
	codeNoDigest     = finding.Lookup("no-digest")
	codeBumpRevision = finding.Lookup("bump-revision")
	codeOverQuota    = finding.Lookup("over-quota")
	codeNearQuota    = finding.Lookup("near-quota")
	codeAlarmNoSpace = finding.Lookup("alarm-nospace")
	codeAlarmCorrupt = finding.Lookup("alarm-corrupt")
	codeEtcdTooOld   = finding.Lookup("etcd-too-old")
	codeEtcdVersion  = finding.Lookup("etcd-version")
)

// verify checks the file as etcdshift verify does.
func verify(d *doctor) error {
	for err := range snapshot.Verify(d.ctx, d.reader.Snapshot()) {
		if !snapshot.IsDamage(err) {
			return err
		}
		d.damaged = true
		d.raise(nil, CodeDamaged, "%s", err)
	}
	return d.ctx.Err()
}

// checkFile checks the file as a whole.
func checkFile(d *doctor) error {
	st, err := d.reader.Snapshot().Facts(d.ctx)
	if err != nil {
		return err
	}
	if st.Keys == 0 {
		d.raise(nil, codeNoLiveKey, "no key is live, %d are deleted: a cluster restored from the file is empty", st.Tombstones)
	}
	if st.Digest != "ok" {
		d.raise(nil, codeNoDigest,
			"a database file of a member (member/snap/db): nothing shows whether it was copied whole, and the WAL beside it may hold newer writes")
	}
	raised := func(alarm snapshot.Alarm) bool {
		return slices.ContainsFunc(st.Alarms, func(r snapshot.Raised) bool { return r.Kind == alarm })
	}
	if raised(snapshot.AlarmNoSpace) {
		d.raise(nil, codeAlarmNoSpace, "a member has raised it, and a restore keeps it: the restored etcd refuses all writes")
	}
	if raised(snapshot.AlarmCorrupt) {
		d.raise(nil, codeAlarmCorrupt, "the data of a member differed, and a restore keeps the alarm: the restored etcd refuses requests")
	}
	checkVersions(d, st)
	checkQuota(d, int64(st.Pages)*int64(st.PageSize))
	most := ""
	if bump := snapshot.MostBump(st.Revision); bump < 1_000_000_000 { // which the remedy names
		most = fmt.Sprintf("; a server dies of a higher --bump-revision than %d here", bump)
	}
	d.raise(nil, codeBumpRevision, "the store is at revision %d; clients of the cluster may have seen higher ones, and would "+
		"take what they cached for newer than what a plain restore holds%s", st.Revision, most)
	return nil
}

// checkVersions checks the etcd to restore into: an older one than the file's does not start.
func checkVersions(d *doctor, st snapshot.Status) {
	const written = "it was written by a cluster at version %s (storage version %s)"
	cluster, storage := cmp.Or(st.ClusterVersion, "-"), cmp.Or(st.StorageVersion, "-")
	switch {
	case st.StorageVersion == "" && st.ClusterVersion == "":
	case d.options.Etcd == "":
		d.raise(nil, codeEtcdVersion, written, cluster, storage)
	case before(d.options.Etcd, st.StorageVersion) || before(d.options.Etcd, st.ClusterVersion):
		d.raise(nil, codeEtcdTooOld, written+"; etcd %s does not start on it", cluster, storage, d.options.Etcd)
	}
}

// before compares the major and minor numbers of releases, as etcd does.
func before(a, b string) bool {
	release := func(s string) (numbers [2]int) {
		_, _ = fmt.Sscanf(strings.TrimPrefix(s, "v"), "%d.%d", &numbers[0], &numbers[1]) // 0 for no number
		return numbers
	}
	x, y := release(a), release(b)
	return slices.Compare(x[:], y[:]) < 0
}

// checkQuota compares the size of the database file on a member with the quota.
func checkQuota(d *doctor, size int64) {
	switch quota := d.options.Quota; {
	case quota > 0 && size >= quota:
		d.raise(nil, codeOverQuota, "the database has %d bytes, the quota is %d: the first write raises the alarm NOSPACE", size, quota)
	case quota > 0 && size >= quota/5*4:
		d.raise(nil, codeNearQuota, "the database has %d bytes, the quota is %d", size, quota)
	case quota > 0 || size < defaultQuota/5*4:
	case size < defaultQuota:
		d.raise(nil, codeNearQuota, "the database has %d bytes; the quota of an etcd without --quota-backend-bytes is %d", size, defaultQuota)
	case size < suggestedQuota:
		d.raise(nil, codeNearQuota,
			"the database has %d bytes: an etcd without --quota-backend-bytes, whose quota is %d, refuses all writes", size, defaultQuota)
	default:
		d.raise(nil, codeNearQuota, "the database has %d bytes: more than the %d that etcd suggests as the largest quota", size, suggestedQuota)
	}
}
