# All tasks of this project, for people and CI. Needs Go and make; modules come through the Go proxy.

GO      ?= go
BIN     := bin/etcdshift
DEMO    := demo

# --version prints the commit and its time if built in a git clone, and (devel) if built from a tarball. Builds of the same commit
# have the same bytes everywhere.
VCS     := $(if $(wildcard .git),$(if $(shell git rev-parse -q --verify HEAD 2>/dev/null),true,false),false)

.PHONY: build man demo check test race mutants torture servers releases e2e k9s fuzz bench bench-live microbench lint vuln reproducible dist licences dist-test clean

# With an empty cache some 1,500 packages are compiled: the count shows the progress.
build:
	@echo 'building $(BIN): from an empty cache ten minutes of CPU time, then seconds'
	@{ CGO_ENABLED=0 $(GO) build -v -buildvcs=$(VCS) -trimpath -ldflags '-s -w' -o $(BIN) ./cmd/etcdshift 2>&1 || echo 'build failed'; } | awk ' \
	  /^[a-zA-Z0-9.\/_-]+$$/ { if (++n % 100 == 0) print "  " n " packages compiled"; fflush(); next } \
	  { print; if ($$0 == "build failed") bad = 1 } END { exit bad }'

# The manual page, from the same texts as --help.
man: build
	$(BIN) man > bin/etcdshift.1

# The main job on a recorded cluster: show the status of the file, migrate it, verify the output.
demo: build
	@rm -rf $(DEMO) && mkdir -p $(DEMO)
	@gzip -dc testdata/calico/before.db.gz > $(DEMO)/before.db
	$(BIN) status $(DEMO)/before.db
	$(BIN) migrate calico-v3 $(DEMO)/before.db $(DEMO)/after.db --report $(DEMO)/report.json
	$(BIN) verify $(DEMO)/after.db

test: check
	@echo 'testing: from an empty cache 30 minutes of CPU time; the first packages take minutes to compile'
	$(GO) test -timeout 30m ./...

# The race detector needs cgo and a C compiler. By default all packages are tested, including those with many servers: an hour.
# Two tests are skipped because the detector cannot run under their memory limits.
RACEPKGS ?= ./...
race:
	CGO_ENABLED=1 $(GO) test -race -timeout 2h -skip '^TestMemoryHasALimit$$|^TestScript$$/^runtime_abort$$' $(RACEPKGS)

# Compares verify on changed snapshots with bbolt's check, a restore and a real server: seven minutes on two cores.
MUTANTS ?= 1000
mutants:
	@out=$$(SNAPSHOT_MUTANTS=$(MUTANTS) $(GO) test -count=1 -timeout 2h -v -run '^TestMutants$$' ./snapshot); status=$$?; \
	  echo "$$out" | grep -v -e '^=== ' -e '--- PASS: TestMutants/'; exit $$status

# Tests the program with damaged snapshots and hostile values, and with kills, full disks and failing calls during writes: see
# docs/project/reliability.md. Two copies a second on two cores.
TORTURE ?= 10000
WRITING ?= 1000
torture: build
	TORTURE='$(TORTURE)' TORTURE_WRITING='$(WRITING)' TORTURE_PROGRAM='$(CURDIR)/$(BIN)' \
	  $(GO) test -count=1 -timeout 12h -v -run '^TestTorture' ./internal/cli

# Real etcd and Kubernetes programs, into e2e/bin.
servers:
	$(GO) build -C e2e -ldflags '-s -w' -o bin/ tool
	$(GO) build -C e2e/etcd -ldflags '-s -w' -o ../bin/etcd go.etcd.io/etcd/server/v3
	$(GO) build -C e2e/etcd -ldflags '-s -w' -o ../bin/etcdutl go.etcd.io/etcd/etcdutl/v3

# Kube-apiservers of other releases, into e2e/bin, and the objects of each release re-encoded for each other one. Each server takes eight
# minutes of CPU time with a cold cache.
RELEASES ?= 1.34.4 1.35.4 1.37.2
releases: build servers
	e2e/release.sh $(RELEASES)
	$(GO) test -C e2e -count=1 -timeout 40m -v -run '^Test(Releases|Emulated)$$' .

# Tests the migration on a real kube-apiserver and a real garbage collector, and the page of a report in a real browser (chromium, or
# the program in CHROMIUM): see e2e/e2e_test.go. With a cold cache it compiles Kubernetes (ten minutes of CPU time) and an S3 server
# (two minutes), and takes six to ten minutes on two cores; later runs take two minutes, mostly waiting for servers.
e2e: build servers
	$(GO) vet -C e2e ./...
	$(GO) build -C e2e/s3 -ldflags '-s -w' -o ../bin/ tool
	e2e/release.sh 1.37.2 3.5.35 3.6.16
	$(GO) test -C e2e -count=1 -parallel 3 -timeout 40m ./...
	$(GO) test -count=1 ./internal/apiservers ./internal/rehearse

# Tests k9s in a terminal and helm with "serve". They link some 350 modules: eight minutes of CPU time with a cold cache.
k9s: build
	$(GO) build -C e2e -ldflags '-s -w' -o bin/ tool
	$(GO) build -C e2e/k9s -ldflags '-s -w' -o ../bin/ tool
	E2E_K9S=1 $(GO) test -C e2e -count=1 -timeout 40m -run '^Test(K9s|Helm)$$' .

# check is quick and part of the tests; lint also runs the tools pinned in a separate module.
check:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'gofmt: the files above'; exit 1; }
	$(GO) vet ./...

lint: check
	$(GO) build -C tools -o ../bin/ honnef.co/go/tools/cmd/staticcheck github.com/golangci/misspell/cmd/misspell
	bin/staticcheck ./...
	git ls-files | grep -v testdata | xargs bin/misspell -error

# Known vulnerabilities in called code, listed at vuln.go.dev. If vuln.go.dev is unreachable, nothing is checked, and a line says so.
vuln:
	$(GO) build -C tools -o ../bin/ golang.org/x/vuln/cmd/govulncheck
	@out=$$(bin/govulncheck ./cmd/etcdshift 2>&1); status=$$?; echo "$$out"; case "$$status $$out" in \
	  0*) ;; \
	  3*) exit 1;; \
	  *vuln.go.dev*) echo 'vuln: NOT CHECKED: vuln.go.dev cannot be reached';; \
	  *) exit 1;; \
	esac

# Checks that builds of the commit in two clones, with different paths and go flags, have the same bytes.
reproducible:
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && git clone -q . "$$dir/a" && git clone -q . "$$dir/another/b" && \
	  GOFLAGS= $(MAKE) -s -C "$$dir/a" build && GOFLAGS='-p=1 -mod=readonly -modcacherw' $(MAKE) -s -C "$$dir/another/b" build && \
	  cmp "$$dir/a/$(BIN)" "$$dir/another/b/$(BIN)" && sha256sum < "$$dir/a/$(BIN)"

# Runs each fuzz target for some time: make fuzz FUZZTIME=5m FUZZPKGS=./snapshot. Packages with tests that link an API server
# compile all of its code again for fuzzing.
FUZZTIME ?= 20s
FUZZPKGS ?= ./...
fuzz:
	@for pkg in $$($(GO) list $(FUZZPKGS)); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg 2>/dev/null | grep '^Fuzz'); do \
	    echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x $$pkg || exit 1; \
	  done; \
	done

# Builds all files of a release from the checked-out tagged commit into dist/: make dist VERSION=v1.2.3 KEY=release.key
dist:
	$(GO) run -C release . -version '$(VERSION)' $(if $(KEY),-key '$(abspath $(KEY))')

# Checks that the licenses of linked code, on any platform, equal the reviewed list release/licences.tsv.
licences:
	$(GO) run -C release . -licences

# Builds a release twice and compares the files, and uses it on a machine (a chroot without a network) with only the bundle.
dist-test: build
	$(GO) vet -C release ./...
	$(GO) test -C release -count=1 -timeout 30m -v ./...

# Measures whole commands and comparable programs on generated snapshots: see docs/project/performance.md.
SIZES ?= XS S
ROWS  ?=
export BENCH_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/etcdshift-bench
bench: build
	$(GO) build -C tools -o ../bin/ go.etcd.io/etcd/etcdutl/v3 go.etcd.io/bbolt/cmd/bbolt ./baseline
	BENCH_SIZES='$(SIZES)' BENCH_ROWS='$(ROWS)' $(GO) test -count=1 -timeout 12h -v -run '^TestBench$$' ./internal/test/bench

# Measures commands beside kubectl and migrations on live servers with the same content: half an hour, 8 GB of memory.
LIVE ?= S
RUNS ?= 3
bench-live: build servers
	$(MAKE) bench SIZES='$(LIVE)' ROWS='^verify$$$$|calico'
	newest() { ls -t "$(BENCH_DIR)"/*-$(LIVE)-$$1.db | head -1; }; \
	  BENCH_LIVE="$$(newest stale5)" BENCH_LIVE_CALICO="$$(newest calico) $$(newest ipam)" BENCH_RUNS='$(RUNS)' \
	  $(GO) test -C e2e -count=1 -timeout 2h -v -run '^TestLive$$' .

microbench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

clean:
	rm -rf bin e2e/bin $(DEMO)
