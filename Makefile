# Two commands on a fresh Debian 12: `make serve` and `make test`. The rest is for those who work on the tree.

.PHONY: help deps build serve test soak sanitize fuzz mutations bench clean

help:
	@echo "make serve     run one node on the loopback address with its data under ./data"
	@echo "make test      build and run every test and a short chaos sweep"
	@echo "make build     the release build: build/release/narad and build/release/narad-chaos"
	@echo "make soak      the long runs: 200 kill -9s of real processes, a sweep of 5000 seeds that must reach every rare place"
	@echo "make sanitize  the tests under AddressSanitizer and UndefinedBehaviorSanitizer; those with threads under ThreadSanitizer"
	@echo "make fuzz      every fuzz target for FUZZ_SECONDS (60) seconds; FUZZ_TARGETS narrows them down"
	@echo "make mutations breaks the code on purpose, one defence at a time, and asks that the tests notice"
	@echo "make bench     the benchmarks, one JSON line a figure"
	@echo "make clean     remove build/"

deps:
	@scripts/deps.sh

build: deps
	@cmake --preset release --log-level=WARNING
	@cmake --build --preset release

serve: build
	@exec build/release/narad serve --dev --data-dir ./data

test: build
	@scripts/test.sh release

soak: build
	NARAD_KILLS=200 build/release/narad_integration --gtest_filter='*Kill*'
	NARAD_TROUBLE_PLACES=1000000 build/release/narad_scenario --gtest_filter='*Trouble*'
	build/release/narad-chaos sweep --seeds 1..5000 --floors --jobs $$(nproc)
	for preset in debug asan; do \
	  cmake --preset $$preset --log-level=WARNING && cmake --build --preset $$preset --target narad-chaos || exit 1; \
	done
	scripts/determinism.sh $$(seq -s, 50 50 2000) release debug asan

# A simulated test has one thread: ThreadSanitizer is for the programs that have more.
sanitize: deps
	@cmake --preset asan --log-level=WARNING && cmake --build --preset asan && echo "asan:" && scripts/test.sh asan
	@cmake --preset tsan --log-level=WARNING && \
	  cmake --build --preset tsan --target narad_conformance --target narad_integration && echo "tsan:" && \
	  TEST_KINDS="conformance integration" SWEEP_SEEDS=none scripts/test.sh tsan

fuzz: deps
	@scripts/deps.sh --fuzz
	@cmake --preset fuzz --log-level=WARNING
	@cmake --build --preset fuzz
	@scripts/fuzz.sh

# What was seen goes into the pages of the scenarios, whatever it was.
mutations: deps
	@scripts/mutations.sh; status=$$?; \
	cmake --build build/debug --target narad_unit >/dev/null && \
	SCENARIOS_WRITE=1 build/debug/narad_unit --gtest_brief=1 --gtest_filter='ScenarioTable.TheCommittedPagesAreCurrent' && \
	exit $$status

bench:
	@scripts/deps.sh --bench
	@$(MAKE) --no-print-directory build
	build/release/bench/sim
	build/release/bench/commit
	build/release/bench/raft
	build/release/bench/metastore
	build/release/bench/image
	build/release/bench/reads

clean:
	rm -rf build
