# Everything is CMake's work (see CMakePresets.json); this file says it in one word.

# What `make run` runs.
MAIN_JOB := build/nunchi demo

FUZZ_SECONDS ?= 600
JOBS ?= $(shell nproc)
CXX_FILES = $(shell find nunchi cli tests bench -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh')
JS_FILES = $(wildcard web/modules/*.js tests/page/*.js)

cmake_options := $(if $(filter true,$(CI)),-DNUNCHI_WERROR=ON)
cmake_options += $(if $(shell command -v ccache),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)

# NUNCHI_CUDA=auto|on|off, as a variable of make or of the environment; otherwise the folder keeps its
# setting, at first auto. The other presets have no CUDA.
cuda_option = $(if $(filter release debug,$(1)),$(addprefix -DNUNCHI_CUDA=,$(NUNCHI_CUDA)))

# $(call configure,PRESET,FOLDER[,check]): the stamp is set once CMake has found what it needs, so
# that later calls need not ask the package manager.
define configure
@test $(2)/.dependencies -nt scripts/install-dependencies || scripts/install-dependencies $(3)
@cmake --preset $(1) $(cmake_options) $(cuda_option)
@touch $(2)/.dependencies
endef

.PHONY: help run build test test-slow test-page debug check asan fuzz format clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

run: ## build the program and run its main job
	$(call configure,release,build)
	@cmake --build --preset release --parallel $(JOBS) --target nunchi_program
	$(MAIN_JOB)

build: ## build the program and its tests into build/
	$(call configure,release,build)
	@cmake --build --preset release --parallel $(JOBS)

test: build ## run the tests, all but the slow ones
	@scripts/run-tests release

test-slow: build ## run the slow tests
	@scripts/run-tests release-slow

test-page: ## test the page of web/ in Chromium; screenshots go to build-page/
	@scripts/install-dependencies page
	@scripts/test-page

debug: ## build for the debugger into build-debug/
	$(call configure,debug,build-debug)
	@cmake --build --preset debug --parallel $(JOBS)

check: ## check the sources with clang-format and clang-tidy (version 14)
	$(call configure,check,build-check,check)
	@{ command -v clang-format && command -v clang-tidy; } >/dev/null || \
	  { echo 'make check needs clang-format and clang-tidy (Debian: clang-format clang-tidy libomp-dev).' >&2; exit 1; }
	@clang-format --dry-run -Werror $(CXX_FILES) $(JS_FILES)
	@scripts/run-tidy build-check $(JOBS)

asan: ## run the tests, all but the slow ones, under AddressSanitizer and UndefinedBehaviorSanitizer
	$(call configure,asan,build-asan)
	@cmake --build --preset asan --parallel $(JOBS)
	@scripts/run-tests asan

# Inputs that reach new code go to build-fuzz/found/, those that fail to build-fuzz/failed/.
fuzz: ## search for inputs that break the readers of files, FUZZ_SECONDS=600 for each
	@command -v clang++ >/dev/null || { echo 'make fuzz needs clang++ (Debian: clang libomp-dev).' >&2; exit 1; }
	$(call configure,fuzz,build-fuzz)
	@cmake --build --preset fuzz --parallel $(JOBS)
	@ctest --test-dir build-fuzz/tests/fuzz --output-on-failure
	@set -e; for source in tests/fuzz/*_fuzz.cpp; do \
	  target=$$(basename $$source .cpp); name=$${target%_fuzz}; \
	  mkdir -p build-fuzz/found/$$name build-fuzz/failed; \
	  build-fuzz/$$target -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=512 -print_final_stats=1 \
	    -artifact_prefix=build-fuzz/failed/$$name- build-fuzz/found/$$name build-fuzz/earlier/$$name tests/fuzz/corpus/$$name; \
	done

format: ## rewrite the sources with clang-format
	@clang-format -i $(CXX_FILES) $(JS_FILES)

clean: ## remove the build folders
	rm -rf build build-debug build-check build-asan build-tsan build-fuzz build-page
