package rehearse

import (
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/policy"
	"github.com/etcdshift/etcdshift/internal/rehearse/collect"
	"github.com/etcdshift/etcdshift/internal/rehearse/tries"
)

// Codes returns all codes of findings, by step.
func Codes() []*finding.Code {
	own := []*finding.Code{codeDamaged, codeRestore, codeEtcd, codeDiffers, codeAlarm, codeServer, codeRecords, codeMisplaced}
	return slices.Concat(own, policy.Codes(), tries.Codes(), collect.Codes())
}

var (
	codeDamaged = finding.NewCode(finding.Error, "rehearse-damaged", "the file is damaged",
		"`etcdshift verify` finds damage in the file. The rehearsal goes on, to show what etcd makes of it.",
		"Restore another copy, or take a new snapshot.")
	codeRestore = finding.NewCode(finding.Error, "rehearse-restore", "etcdutl does not restore the file",
		"`etcdutl snapshot restore`, with the flags that a migration prints, fails on the file. The reason is its own.",
		"`etcdshift verify` names what is damaged. Restore another copy, or take a new snapshot.")
	codeEtcd = finding.NewCode(finding.Error, "rehearse-etcd", "etcd does not run on the restored file",
		"`etcdutl snapshot restore` accepts the file, and the etcd that starts on it ends, or its members form no cluster. The reason is etcd's own.",
		"`etcdshift verify` names the records that etcd does not read. Restore another copy, or take a new snapshot.")
	codeDiffers = finding.NewCode(finding.Error, "rehearse-differs", "etcd serves something else than the file holds",
		"A key, value, revision, version or lease of the running etcd is not what etcdshift reads in the file, or a member has another HashKV. Nothing else "+
			"had written to it.",
		"`etcdshift verify` names records whose numbers contradict each other. If it finds nothing, report the difference.")
	codeAlarm = finding.NewCode(finding.Warning, "rehearse-alarm", "the file has an alarm of etcd",
		"The restore keeps it, and the restored etcd refuses every write (`mvcc: database space exceeded`), with CORRUPT also reads. Dry runs do not show it.",
		"`etcdshift explain alarm-nospace` and `alarm-corrupt` have the steps.")
	codeServer = finding.NewCode(finding.Error, "rehearse-api-server", "an API server does not start on the restored file",
		"The API server, or the controller manager, ends or never becomes ready. The reason is its own.",
		"Read the reason. With `--kube-apiserver`, the binary must be of the release of the cluster, and know the keys of `--encryption-config`.")
	codeMisplaced = finding.NewCode(finding.Error, "rehearse-misplaced", "an object is under the key of another one",
		"The API server lists the object under its own name, and finds it under that of its key alone: an update under either name fails.",
		"Delete it by the name and namespace of the key: `etcdshift explain key-mismatch`.")
	codeRecords = finding.NewCode(finding.Warning, "rehearse-records", "doctor finds a record that will fail",
		"The snapshot is of kcp, whose API server does not run here: the records are checked from the file alone. The reason begins with a code of doctor.",
		"`etcdshift explain CODE` has the remedy of that code.")
)
