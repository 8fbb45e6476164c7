package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// session lists the commands of TestElsewhere, one per line, on files of testdata.
const session = `
status before.db
status -o json before.db.gz
get before.db ns -o yaml
get before.db tiers.crd.projectcalico.org
get before.db secrets -A -o json
get all.db.gz pods,deployments -A -o wide
get before.db ns --sort-by=.metadata.name -o jsonpath={.items[*].metadata.name}
kubectl all.db.gz get pods -A
kubectl all.db.gz describe pods -A
kubectl all.db.gz events -A
kubectl before.db api-resources
export all.db.gz -n default
keys before.db
keys -o jsonl --history before.db
sizes before.db
doctor before.db
doctor -o sarif all.db.gz
policy check all.db.gz -f validating.yaml
history before.db /registry/namespaces/default
timeline before.db
verify before.db
report before.db page.html
migrate calico-v3 --report report.json before.db after.db
migrate calico-v3 before.db after.db
migrate calico-v3 --dry-run --diff before.db never.db
verify after.db
diff before.db after.db
diff -o json before.db after.db
migrate storage-versions before.db stored.db
delete all.db.gz deleted.db namespaces default --keep
patch all.db.gz patched.db namespaces default -p {"metadata":{"labels":{"a":"b"}}}
run --report run.json plan.yaml before.db ran.db
compact before.db compact.db
verify compact.db
fleet list . list.json --name a --match before.db
fleet run list.json --index 0 -- migrate calico-v3 {in} {result}.db --report {result}.json
fleet run list.json --index 0 -- migrate calico-v3 {in} {result}.db --report {result}.json
fleet summary list.json
kcp list shard.db
kcp extract 1vi0m2lj7drncrhe shard.db consumer.archive
sign before.db --key signing.key
verify before.db --key signing.pub
nothing
status --nothing before.db
status .
status plan.yaml
`

const plan = `apiVersion: etcdshift/v1
kind: Plan
steps:
- command: migrate calico-v3
- command: delete
  args: [events]
  flags: {all: true, all-namespaces: true}
`

// TestElsewhere runs the programs for other systems with an emulator, and compares answers, exit
// statuses and files with this system's program. ELSEWHERE lists the systems, such as
// "windows/amd64=wine linux/arm64=qemu-aarch64-static".
func TestElsewhere(t *testing.T) {
	words := strings.Fields(os.Getenv("ELSEWHERE"))
	if len(words) == 0 {
		t.Skip("ELSEWHERE names no systems, such as linux/arm64=qemu-aarch64-static")
	}
	dir := t.TempDir()
	key := newKey(t, dir)
	r := &release{root: must(filepath.Abs("..")), out: filepath.Join(dir, "programs")}
	here := r.runSession(t, host, key)
	for _, word := range words {
		system, runner, _ := strings.Cut(word, "=")
		p := must(parsePlatform(system))
		t.Run(system, func(t *testing.T) {
			for i, got := range r.runSession(t, p, key, strings.Split(runner, ",")...) {
				if got != here[i] {
					t.Errorf("is:\n%.4000s\n\nwant:\n%.4000s", got, here[i])
				}
			}
		})
	}
}

// runSession builds the program for a platform, and returns the output of each command, and then
// the sums of all files in the working folder.
func (r *release) runSession(t *testing.T, p platform, key string, runner ...string) (all []string) {
	program := must(r.compile(t.Context(), p))
	dir := t.TempDir()
	provide(t, dir, key)
	for line := range strings.Lines(strings.TrimSpace(session)) {
		words := slices.Concat(runner, []string{program}, strings.Fields(line))
		c := exec.CommandContext(t.Context(), words[0], words[1:]...)
		var out, stderr strings.Builder
		c.Dir, c.Stdout, c.Stderr, c.WaitDelay = dir, &out, &stderr, time.Second // servers of Wine may keep both open
		if err := c.Run(); err != nil && c.ProcessState == nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s\nexit status %d\n%s\nstderr:\n%s", strings.TrimSpace(line),
			c.ProcessState.ExitCode(), &out, &stderr))
	}
	for _, e := range must(os.ReadDir(dir)) {
		all = append(all, must(sumOf(filepath.Join(dir, e.Name())))+" "+e.Name())
	}
	return all
}

// provide creates the files of the session.
func provide(t *testing.T, dir, key string) {
	script := `gzip -dc $1/calico/before.db.gz > before.db
gzip -dc $1/kcp/shard1-before.db.gz > shard.db
cp $1/calico/before.db.gz $1/kubectl/all.db.gz $1/policies/validating.yaml .
cp ${2%.key}.key signing.key; cp ${2%.key}.pub signing.pub; printf %s "$3" > plan.yaml
touch -d 2026-01-02T03:04:05Z *`
	do(t, dir, "sh", "-euc", script, "provide", must(filepath.Abs("../testdata")), key, plan)
}
