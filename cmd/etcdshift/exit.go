package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"syscall"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/internal/fleet"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/s3"
	"github.com/etcdshift/etcdshift/internal/sandbox"
	"github.com/etcdshift/etcdshift/internal/save"
	"github.com/etcdshift/etcdshift/internal/signature"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/calico"
	"github.com/etcdshift/etcdshift/transform/kcp/archive"
	"github.com/etcdshift/etcdshift/transform/kcp/purge"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
	"github.com/etcdshift/etcdshift/transform/storageversion"
)

// The exit statuses, as the manual promises them.
const (
	exitDone        = 0
	exitFailed      = 1   // could not read, write or verify; nothing was written
	exitFound       = 1   // of the commands that look for something: found
	exitUsage       = 2   // the command line is wrong
	exitRefused     = 3   // records that can't be migrated; nothing was written
	exitAllowed     = 4   // written; --allow let problems pass: their records were skipped or lost fields
	exitCannotCheck = 5   // of the commands that look for something: could not look
	exitInterrupted = 130 // 128 + SIGINT, as shells say; nothing was written
)

// failure is an error with an exit status and a hint.
type failure struct {
	status int
	err    error
	hint   string // "" for the one that fits err
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// errSaid is for what was printed already.
var errSaid = errors.New("")

// usagef returns a usage error about a command, by its path; "" for the program.
func usagef(command, format string, args ...any) error {
	help, err := "etcdshift --help", fmt.Errorf(format, args...)
	if command != "" {
		help, err = "etcdshift "+command+" --help", fmt.Errorf("%s: %w", command, err)
	}
	return &failure{exitUsage, err, fmt.Sprintf("%q shows its usage", help)}
}

func finish(err error, stderr io.Writer) int {
	if err == nil {
		return exitDone
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(stderr, "etcdshift: interrupted; nothing was written")
		return exitInterrupted
	}
	f := &failure{status: exitFailed}
	errors.As(err, &f)
	for line := range strings.Lines(err.Error()) { // several errors of one run are a line each
		fmt.Fprintln(stderr, "etcdshift:", render.Printable(strings.TrimSuffix(line, "\n")))
	}
	if hint := cmp.Or(f.hint, hintFor(err)); hint != "" {
		fmt.Fprintln(stderr, "hint:", render.Printable(hint)) // a server may have a word in it
	}
	return f.status
}

func statusOf(err error) int {
	f := &failure{status: exitFailed}
	errors.As(err, &f)
	return f.status
}

// likeURL finds what begins as a URL does, and not as a path of Windows.
var likeURL = regexp.MustCompile(`[[:alnum:]]{2,}:/`)

// hintFor returns a hint about err, "" for none.
func hintFor(err error) string {
	if about := (*s3.Error)(nil); errors.As(err, &about) && about.Next != "" && !errors.Is(err, s3.ErrUncertain) {
		return about.Next
	}
	if full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT); full && strings.Contains(err.Error(), "s3://") {
		return "objects are copied to, expanded and made in TMPDIR, else /tmp: it needs room for all of that; " +
			"a pod needs a larger emptyDir and ephemeral-storage"
	}
	if errors.Is(err, snapshot.ErrScratch) {
		return "scratch files are made in the folder of the output, else in TMPDIR or /tmp: it must exist, let you write, and have room"
	}
	if of := (*fs.PathError)(nil); errors.As(err, &of) && errors.Is(err, fs.ErrNotExist) && s3.Is(of.Path) {
		return "a file belongs here, not an object in a bucket: copy it first"
	}
	if errors.Is(err, fs.ErrNotExist) && likeURL.MatchString(err.Error()) {
		return "check the path: an object in a bucket is s3://BUCKET/KEY; no other URL is read or written"
	}
	for _, h := range []struct {
		is   error
		hint string
	}{
		{s3.ErrUncertain, "compare the SHA-256 of the object before you use it; run the command again: an object with the same bytes counts as written"},
		{s3.ErrTooLarge, "if you know what it is, raise the limit with --max-expand"},
		{s3.ErrSlow, "try again, or from a machine with a faster way to the server"},
		{s3.ErrBroken, "try again; if it stays, the object, or something on the way to it, is damaged"},
		{fleet.ErrNotFleet, `give the file that "etcdshift fleet list" wrote`},
		{fleet.ErrChanged, "make a new list under another --name: results of what the snapshot was before do not count for it"},
		{fleet.ErrOtherInput, "move the report and its output away, or make a list under another --name"},
		{fleet.ErrLost, "remove the report and what is left of the output, and run the index again"},
		{fleet.ErrDryRun, "make a list under another --name, or remove the report"},
		{transform.ErrOutIsIn, "an input is never changed; name another file for the output"},
		{signature.ErrOtherKey, "give the public key of who signed the file, from a place that you trust; a key beside the file proves nothing"},
		{signature.ErrWrong, "do not restore it: with a good digest somebody has changed it, with a wrong one it may be damaged; try another copy"},
		{snapshot.ErrDigest, "the file differs from the one that etcd saved; try another copy, or take a new snapshot with \"etcdctl snapshot save\""},
		{snapshot.ErrTruncated, "the file was not written or copied to its end; try another copy, or take a new snapshot"},
		{snapshot.ErrFreeList, "no record is harmed: \"etcdshift migrate\" writes a copy without the list, and that restores"},
		{snapshot.ErrDamaged, "try another copy of the file, or take a new snapshot with \"etcdctl snapshot save\""},
		{snapshot.ErrNotSnapshot, "give a file that \"etcdctl snapshot save\" made, or a member/snap/db, or one of them compressed (gzip, zstd, zip) " +
			"or in an archive (zip, tar, tar.gz)"},
		{snapshot.ErrExpand, "if you know the file, raise the limit with --max-expand, or expand it yourself and give the result"},
		{snapshot.ErrChanged, "something writes to the file; work on a copy"},
		{calico.ErrManifest, "give --v3-crds the file of v3 CRDs of a Calico release, as \"kubectl apply -f\" takes it"},
		{inspect.ErrUnknownType, "\"etcdshift status\" lists what the snapshot holds"},
		{inspect.ErrAmbiguousType, "give the type with its group, as in the message"},
		{storageversion.ErrNotThere, "\"etcdshift status\" lists what the snapshot holds, and with -o json which definitions a webhook converts"},
		{transform.ErrEmptyPrefix, "\"etcdshift status\" lists the storage prefixes of a file; --prefix takes whole ones"},
		{clusters.ErrNoCluster, "\"etcdshift cluster list\" lists the logical clusters of a file, and the orphans of others"},
		{purge.ErrCacheAlone, "--from-shard S purges the copies of shard S from a cache; with --to-shard T they move to shard T"},
		{purge.ErrNoCacheHere, "give the snapshot of the cache server: a shard with a separate cache has no copies in its own file"},
		{survey.ErrShardUnknown, "--as-shard S names this shard"},
		{purge.ErrSameShard, "--to-shard names the shard of the import, not the origin"},
		{clusters.ErrSplit, "leave --prefix out, or give the whole prefix that \"etcdshift status\" prints"},
		{clusters.ErrNoShard, "\"etcdshift status\" shows the contents of a file; name an unusual storage prefix with --prefix"},
		{clusters.ErrNoCache, "\"etcdshift status\" shows the contents of a file; name an unusual storage prefix with --prefix"},
		{clusters.ErrSeveralShards, "choose one with --prefix"},
		{clusters.ErrSeveralCaches, "choose one with --prefix"},
		{encoding.ErrKMSv1, `docs/encryption.md has the steps under "KMS v1"; a copy of the file without that provider reads all other values`},
		{encoding.ErrEncrypted, "give the EncryptionConfiguration of the API servers of this cluster, or one that still has its keys"},
		{snapshot.ErrVerify, "nothing was written; this is a fault of etcdshift or of the disk: try another disk, and report it"},
		{archive.ErrNotArchive, "give a file that \"etcdshift cluster extract\" made"},
		{archive.ErrFormat, "read it with the etcdshift that made it, or a newer one"},
		{archive.ErrDamaged, "try another copy of the archive, or extract it again"},
		{save.ErrLearner, "name a voting member: \"etcdctl endpoint status\" shows which it is"},
		{save.ErrNoLeader, "name a member that reaches the others; of a cluster without a quorum, \"etcdctl snapshot save\" takes what a member has"},
		{save.ErrLag, "name the others too, or wait; --max-lag allows more"},
		{save.ErrCorrupt, "name the other members: what this one has is not what they have"},
		{save.ErrClusters, "name the members of one cluster"},
		{sandbox.ErrLongPath, "name a folder with a short path, such as /var/tmp, with --dir"},
		{sandbox.ErrNoSpace, "name a folder of a larger file system with --dir"},
		{fs.ErrExist, "an existing file is never overwritten; name another, or move this one"},
		{fs.ErrNotExist, "check the path"},
		{fs.ErrPermission, "run as a user who may read the input and write to the folder of the output"},
		{syscall.ENOSPC, "the folder of the output needs a little more room than the size of the input"},
		{syscall.EDQUOT, "the folder of the output needs a little more room than the size of the input"},
		{syscall.EFBIG, "the file system, or a limit such as \"ulimit -f\", allows no file of this size"},
		{syscall.ENOTDIR, "check the path"},
	} {
		if errors.Is(err, h.is) {
			return h.hint
		}
	}
	if u := (*save.Error)(nil); errors.As(err, &u) {
		return "the flags are those of etcdctl: try --endpoints, --cacert, --cert, --key and --user with \"etcdctl endpoint status\""
	}
	if u := (unusable{}); errors.As(err, &u) {
		return "give the file of the API servers' --encryption-provider-config; its KMS plugins must run on this machine"
	}
	return ""
}
