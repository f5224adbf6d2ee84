# The habits of this project. `make` alone lists them.
GO ?= go
GOLANGCI = $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK = golang.org/x/vuln/cmd/govulncheck@v1.8.0
FUZZTIME ?= 30s
KILLS ?= 50
RANDOM_CUTS ?= 20
# The packages that take longest begin first, and the others fill what they leave.
LONGEST = ./cmd/lopen ./lifecycle ./cmd/lopen/internal/repo ./lifecycle/backup

.DEFAULT_GOAL := help
.PHONY: help run build test race house mutants crash failover fuzz corpora dead vulns hostile night bench bench-quick bench-report bench-compare bench-fleet agents lint fmt tidy-check cross ci

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## work through the sample project with a stand-in agent
	@sh cmd/lopen/testdata/sample/run.sh bin/lopen

build: ## build bin/lopen
	@$(GO) build -o bin/lopen ./cmd/lopen

test: ## run the tests
	$(GO) test -count=1 $(LONGEST) ./... ./.ci/mutants ./.ci/house
	@.ci/postgresql --look

race: ## run the tests under the race detector: fewer crash states, and scripts in which something works at once
	GORACE=atexit_sleep_ms=20 $(GO) test -count=1 -race -short -timeout 15m $(LONGEST) ./...

house: ## print the shape of the source: lines, files and exported names by room
	@$(GO) run ./.ci/house

mutants: ## take each safety mechanism out and require that a test notices
	$(GO) run ./.ci/mutants

crash: ## cut the power and kill processes at length: simulated disks, real file systems, the real command
	$(GO) test -count=1 -v -timeout 120m -run 'TestPowerCutAnywhere|TestTakeover|TestFaultAndPowerCut|TestAnyHistory|TestVerifyNoticesEveryFlip|InACompaction' ./lifecycle \
		-deep -random $(RANDOM_CUTS) -rapid.checks 50000 -rapid.seed 0 | grep -v '^=== '
	$(GO) test -count=1 -v -timeout 60m -run 'TestPowerCuts|TestEveryByteOfAPackedSegment' ./writer/journal -deep | grep -v '^=== '
	$(GO) test -count=1 -v -timeout 60m -run 'TestPowerCut$$|TestKill9' ./lifecycle -cuts 100 -kills 1000 | grep -v '^=== '
	$(GO) test -count=1 -v -timeout 60m -run 'TestApply.*Anywhere' ./lifecycle/checkpoint -rewinds 500 -images 0 | grep -v '^=== '
	$(GO) test -count=1 -v -timeout 120m -run 'TestModel$$' ./lifecycle/checkpoint -rapid.checks 50000 -rapid.seed 0 | grep -v '^=== '
	$(GO) test -count=1 -run 'TestKilled|TestWorkKilled' -v -timeout 60m ./cmd/lopen -kills $(KILLS) -seed 0

fuzz: ## fuzz every decoder and parser, FUZZTIME each
	@$(GO) list ./... | while read -r pkg; do \
		for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
		done; \
	done

corpora: ## replay the committed corpus of every parser under a memory limit
	@.ci/corpora

dead: ## list functions that nothing calls, and those of test support that no test calls
	@GO=$(GO) .ci/dead

failover: ## kill primaries and runners at length: a hundred rounds of the fleet's tests, with a hundred sessions
	$(GO) test -count=1 -v -timeout 120m -run 'TestFailover|TestKill9' ./lifecycle/fleet -rounds 100 -sessions 100 | grep -v '^=== '

hostile: ## put every kind of file in every place and run every command, at length
	$(GO) test -count=1 -timeout 60m -run 'TestPlaces|TestHostileSession|TestHostileRows|TestNothingSteersTheTerminal|TestNothingAliveLeaves|TestEveryDoorIsWalked' ./cmd/lopen -hostile
	$(GO) test -count=1 -timeout 60m -run 'TestFault45' ./lifecycle -deep

vulns: ## look for known vulnerabilities in what is called, if the database can be reached
	@GOVULNCHECK=$(GOVULNCHECK) .ci/vulns

night: ## a plan of 40 tasks with a stand-in that fails in known ways, alone and with ten kills; RALPHEX=path runs that as well
	$(GO) run ./bench/night -kills 10 $(if $(RALPHEX),-ralphex $(RALPHEX))

bench: ## measure everything else a loop could use as well: bench/RESULTS.md, README's table; half an hour
	cd bench/peers && $(GO) run . -out .. -readme ../../README.md

bench-quick: ## the same in some minutes, with few samples of small work
	cd bench/peers && $(GO) run . -out .. -quick

bench-report: ## write the tables of bench/results.json again, README's as well
	cd bench/peers && $(GO) run . -from ../results.json -out .. -readme ../../README.md

bench-compare: ## compare the benchmarks of REF with those of here, in turns
	@GO=$(GO) .ci/bench-compare $(REF)

bench-fleet: ## measure sessions that are shipped to PostgreSQL: bench/FLEET.md; ten minutes
	$(GO) run ./bench/fleet -out bench/FLEET.md

agents: ## run the real claude, codex and opencode against mocks of their APIs; AGENTS=DIR has them, RECORD=DIR records samples
	@GO=$(GO) AGENTS=$(AGENTS) RECORD=$(RECORD) .ci/agents

lint: ## run the linters, import rules included
	$(GOLANGCI) run ./... ./.ci/mutants ./.ci/house

fmt: ## format the code
	$(GO) fmt ./...

tidy-check: ## fail if go.mod or go.sum are not tidy
	$(GO) mod tidy -diff

cross: ## build and vet for the other systems
	GOOS=darwin $(GO) vet ./...
	GOOS=windows $(GO) vet ./...

ci: tidy-check ## everything that a change must pass
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	$(GO) vet ./... ./.ci/mutants ./.ci/house
	$(MAKE) lint
	$(MAKE) cross
	$(MAKE) vulns
	$(MAKE) corpora
	$(MAKE) dead
	$(MAKE) race
	$(MAKE) run
