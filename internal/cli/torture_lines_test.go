package cli

import (
	"crypto/sha256"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// A tortureBase is a recorded snapshot, with names of its objects for command lines.
type tortureBase struct {
	name                    string // in the folder of fixtures
	weight                  int    // of 40
	kind, object, namespace string // TYPE, TYPE/NAME and their namespace
	key, cluster            string
	flags                   string
	folder                  bool // a data directory
}

func tortureBases() []tortureBase {
	widgets := tortureBase{name: "storage", weight: 12, kind: "widgets", object: "widget/raw1",
		namespace: "default", cluster: "c1", key: "/registry/demo.example.com/widgets/default/raw1"}
	encrypted := widgets
	encrypted.name, encrypted.weight, encrypted.flags = "encrypted", 6, "--encryption-config ../fix/box.yaml"
	plain := widgets
	plain.name, plain.weight, plain.object, plain.key = "etcd", 8, "cm/updated", "/registry/configmaps/default/updated"
	return []tortureBase{
		widgets, encrypted, plain,
		{"all", 4, "pods", "pod/gated", "a", "/registry/pods/a/gated", "c1", "", false},
		{"kcp", 1, "configmaps", "cm/kube-root-ca.crt", "default",
			"/registry/core/configmaps/1s485cpq7w4liuqc/default/kube-root-ca.crt", "1s485cpq7w4liuqc", "", false},
		{"calico", 1, "ippools.crd.projectcalico.org", "ippools.crd.projectcalico.org/default-ipv4-ippool", "default",
			"/registry/crd.projectcalico.org/ippools/default-ipv4-ippool", "c1", "", false},
		{"member", 8, "configmaps", "cm/cm1", "shop-10", "/registry/configmaps/shop-10/cm1", "c1", "", true},
	}
}

// tortureFixtures writes the other files used in command lines: bases, policies, plans.
func tortureFixtures(t testing.TB, dir string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	write := func(name string, data []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o400))
	}
	for name, src := range map[string]string{"storage": "storage/before.db", "etcd": "etcd/etcd-3.7.db",
		"all": "kubectl/all.db", "calico": "calico/before.db",
		"kcp": "kcp-claims/shard-1.db", "kcp-root": "kcp-claims/root.db"} {
		recordedFile(t, dir, src, name+".db")
	}
	tortureMember(t).Write(t, filepath.Join(dir, "member.db"))
	for _, name := range []string{"mutating.yaml", "validating.yaml"} {
		text, err := os.ReadFile(testdata("policies", name))
		require.NoError(t, err)
		write(name, text)
	}
	write("box.yaml", []byte(`kind: EncryptionConfiguration
apiVersion: apiserver.config.k8s.io/v1
resources:
- resources: ['*.*']
  providers:
  - secretbox: {keys: [{name: box, secret: YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE=}]}
  - identity: {}
`))
	write("plan.yaml", []byte("apiVersion: etcdshift/v1\nkind: Plan\nsteps:\n- command: migrate storage-versions\n- "+
		"command: migrate calico-v3\n"))
	for _, line := range []string{
		"migrate storage-versions " + dir + "/storage.db " + dir +
			"/encrypted.db --rewrap --allow pruned-field --encryption-config " + dir + "/box.yaml",
		"kcp extract 1yd25nnf5yvh8dd6 " + dir + "/kcp-root.db " + dir + "/team.archive",
		"extract " + dir + "/calico.db " + dir + "/part.archive -n team-a",
	} {
		status, stdout, stderr := runWords(strings.Fields(line)...)
		require.Contains(t, []int{exitDone, exitAllowed}, status, "%s: %s%s", line, stdout, stderr)
	}
	signFixtures(t, dir)
}

// tortureMember returns a member whose database is some entries behind its log.
func tortureMember(t testing.TB) *etcdtest.Member {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, etcdtest.UnpackMember(testdata("wal", "kube37.tar.zst"), dir))
	db, err := readFixture(testdata("wal", "kube37.snapshot.db"))
	require.NoError(t, err)
	return etcdtest.ReadMember(t, filepath.Join(dir, "data"), db[:len(db)-sha256.Size])
}

// signFixtures signs each file.
func signFixtures(t testing.TB, dir string) {
	testKeys(t, dir)
	var lines []string
	for _, b := range tortureBases() {
		if b.folder {
			continue
		}
		lines = append(lines, "sign "+dir+"/"+b.name+".db --key "+dir+"/backup.key --signature "+dir+"/"+b.name+
			".minisig")
	}
	for _, line := range lines {
		status, stdout, stderr := runWords(strings.Fields(line)...)
		require.Zero(t, status, "%s: %s%s", line, stdout, stderr)
	}
}

// tortureLaw holds the promises of a kind of command line about its exit status and its output.
type tortureLaw struct {
	statuses []int
	written  []int // the statuses with an OUT
}

// tortureShow is the law of commands that are not in tortureLaws.
func tortureShow() tortureLaw { return tortureLaw{statuses: []int{0, 1}} }

// tortureLaws has the laws of the commands in tortureLines.
func tortureLaws() map[string]tortureLaw {
	show := tortureShow()
	named := tortureLaw{statuses: []int{0, 1, 2, 3}} // 2 is a TYPE missing in the file
	find := tortureLaw{statuses: []int{0, 1, 5}}
	change := tortureLaw{[]int{0, 1, 3, 4}, []int{0, 4}}
	chosen := tortureLaw{[]int{0, 1, 2, 3, 4}, []int{0, 4}}
	return map[string]tortureLaw{
		"timeline": named, "kubectl": named, "kcp list": show, "__complete": show,
		"keys": named, "get": named, "grep": named, "history": named, "export": named,
		"serve":  {statuses: []int{1, 2, 130}},
		"verify": find, "doctor": find, "diff": {statuses: []int{0, 1, 2, 5}}, "policy check": find, "kcp verify": find,
		"rehearse": find,
		"report":   {[]int{0, 1, 5}, []int{0, 1}}, "delete": chosen, "patch": chosen, "compact": change, "run": change,
		"migrate": change, "policy apply": change,
		"rename-node": change, "prepare-restore": change, "sanitize": change, "crop": chosen, "extract": chosen,
		"import": change, "purge": chosen,
		"kcp extract": change, "kcp purge": change, "kcp import": change, "sign": {[]int{0}, []int{0}},
		"status": show, "restore": {[]int{0, 1, 3}, []int{0}}, "salvage": {[]int{0, 1, 4}, []int{0, 4}},
		"save": {[]int{0, 1, 3}, []int{0}},
	}
}

// tortureLawOf returns the law of a command line, and the name of its command.
func tortureLawOf(args []string) (name string, law tortureLaw) {
	for _, name := range []string{strings.Join(args[:min(2, len(args))], " "), args[0]} {
		if law, known := tortureLaws()[name]; known {
			return name, law
		}
	}
	return args[0], tortureShow()
}

// tortureLines returns the command lines to run on a damaged copy: all commands with a file
// argument, but only one of those that start a server. The number of the copy selects it, and the
// formats. A command that needs only a snapshot, and is not in tortureLaws, has no line here.
func tortureLines(b tortureBase, number int) (lines [][]string) {
	turn := func(words ...string) string { return words[number/3%len(words)] }
	other := "../fix/" + b.name + ".db"
	text := strings.NewReplacer("IN", "in.db", "OUT", "out", "OTHER", other, "KIND", b.kind, "OBJECT", b.object, "NS",
		b.namespace, "KEY", b.key, "CLUSTER", b.cluster).Replace(strings.Join(slices.Concat([]string{
		"verify IN" + turn("", " -o json"),
		"doctor IN" + turn("", " -o json", " -o sarif", " -o junit", " --for new-machines"),
		turn("verify IN --key ../fix/backup.pub --signature ../fix/"+b.name+".minisig",
			"sign IN --key ../fix/backup.key --signature OUT.minisig"),
		"status IN" + turn("", " -o json", " OTHER", " OTHER -o json"),
		"restore IN --data-dir OUT.data" + turn("", " -o json", " --bump-revision 0"),
		turn("salvage IN OUT", "salvage IN OUT -o json", "salvage IN OUT --include-unsure", "salvage IN OTHER OUT"),
		"keys IN" + turn("", " -o jsonl", " --history", " -o json"),
		"keys IN KEY --raw --show-secrets" + turn("", " --stored"),
		"history IN KEY" + turn("", " -o json", " --all", " --free-pages"),
		"grep IN a" + turn("", " -i KIND", " -o json"),
		"timeline IN" + turn("", " -o jsonl", " --all", " --free-pages"),
		turn("diff IN OTHER", "diff OTHER IN", "diff IN OTHER -o json --all"),
		"report IN " + turn("OUT.html", "OUT.html --before OTHER"),
		"export IN" + turn(" -A", " -n NS --show-secrets --needed --all", " -A --crds"),
		"get IN * -A" + turn(" -o json", " -o yaml --show-secrets", "", " -o wide --stored", " --deleted",
			" --deleted --free-pages"),
		"get IN KIND -A" + turn(" -o wide", " -o json", " -o name --sort-by .metadata.name",
			" -o custom-columns=N:.metadata.name,A:..a"),
		[]string{ // always the same server, as slow as everything else
			"kubectl IN events -A", "kubectl IN api-resources", "serve IN --unix ../SOCKET",
			"kubectl IN " + turn("get KIND -A", "describe KIND -A", "get KIND -A -o yaml", "explain KIND", "events -A"),
		}[number/2%4],
		[]string{"policy check IN -f ../fix/validating.yaml" + turn("", " -o json"),
			"policy apply IN OUT -f ../fix/mutating.yaml"}[number/8%2],
		"kcp list IN" + turn("", " -o json"),
		"kcp extract CLUSTER IN OUT",
		"kcp purge CLUSTER IN OUT" + turn("", " --scrub"),
		turn("kcp import ../fix/team.archive IN OUT", "kcp verify ../fix/team.archive IN OTHER",
			"kcp verify ../fix/team.archive OTHER IN"),
		"migrate calico-v3 IN OUT",
		"migrate storage-versions IN OUT" + turn("", " --report OUT.json --allow invalid --allow undecodable"),
		"rename-node IN OUT kind-control-plane=n2 " + turn("", "--allow no-such-node"),
		"prepare-restore IN OUT" + turn("", " --isolate --report OUT.json"),
		"sanitize IN OUT --keep-names --plaintext",
		"purge IN OUT " + turn("-n NS", "OBJECT -n NS", "KIND -A --scrub", "-l a=b -A",
			"-n NS --archive ../fix/part.archive"),
		"extract IN OUT " + turn("-n NS --needed", "OBJECT -n NS", "KIND -A", "-l a=b -A"),
		turn("import IN OTHER OUT --on-conflict take", "import OTHER IN OUT --on-conflict keep") +
			" --allow not-an-archive",
		"crop IN OUT " + turn("-n NS --needed", "OBJECT -n NS --allow owner-outside", "KIND -A --needed", "-l a=b -A"),
		turn("delete IN OUT OBJECT -n NS", "delete IN OUT KIND --all -A",
			"delete IN OUT KIND -A --where object.metadata.name==\"x\""),
		turn(`patch IN OUT OBJECT -n NS -p {"metadata":{"labels":{"a":"b"}}}`,
			`patch IN OUT KIND -A --all --type merge -p {"metadata":{"annotations":{"a":"b"}}}`),
		"compact IN OUT" + turn("", " --keep-revisions 5"),
		"run ../fix/plan.yaml IN OUT" + turn("", " --dry-run --diff"),
		"__complete get IN KIND",
	}, plainLines("SNAPSHOT", slices.Collect(maps.Keys(tortureLaws())), turn("IN", "IN -o json"))), "\n"))
	if b.folder {
		text = strings.ReplaceAll(text, "salvage in.db", "salvage in.db/member/snap/db") +
			"\nsave --data-dir in.db out" + turn("", " --wal-history", " -o json")
	}
	if number%100 == 7 { // with a real etcd
		text += "\nrehearse in.db"
	}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if b.folder && (words[0] == "sign" || slices.Contains(words, "--signature")) {
			continue // of files
		}
		if b.flags != "" && !slices.Contains([]string{"__complete", "sign", "restore"}, words[0]) {
			words = withFlags(words, strings.Fields(b.flags))
		}
		lines = append(lines, words)
	}
	return lines
}

// withFlags inserts flags after the name of the command; for kubectl after the file.
func withFlags(words, flags []string) []string {
	n := 1
	switch words[0] {
	case "migrate", "policy", "kcp":
		n = 2
	}
	return append(append(append([]string{}, words[:n]...), flags...), words[n:]...)
}

// TestLinesTorture: each command that opens a snapshot has a line for some damaged copy, and no law
// belongs to another command.
func TestLinesTorture(t *testing.T) {
	var lines []string
	for number := range 100 {
		for _, b := range []tortureBase{tortureBases()[0], {name: "member", folder: true}} {
			for _, words := range tortureLines(b, number) {
				lines = append(lines, strings.Join(words, " "))
			}
		}
	}
	lacking(t, "torture_lines_test.go: add a line of %s to tortureLines, and its statuses to tortureLaws", lines, nil,
		opensSnapshot)
	for name := range tortureLaws() {
		require.True(t, hasLine(lines, name), "tortureLaws: no line of %s in tortureLines", name)
	}
}
