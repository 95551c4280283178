# Two commands do everything on a fresh Debian or Ubuntu machine: `make demo` and
# `make test`. Each target first installs what it needs and the machine lacks
# (scripts/setup), which costs nothing when nothing is missing.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
SEEDS ?= 1300
FROM ?= 30001
KEEP ?=
PORTAL ?=
PREFIX ?= /usr/local
DESTDIR ?=

# rustup installs here; a shell that was open before does not know it yet.
export PATH := $(HOME)/.cargo/bin:$(PATH)

.PHONY: setup build demo test bench calibrate check-array check-demo check-model predictions sim sim-weekly plants fuzz docs install lint fmt clean help

setup: ## install what build, demo and test need (packages, Rust, a guest kernel)
	@scripts/setup build demo test lint

build: ## build the release binary, with its debug info in a file beside it
	@scripts/setup build
	$(CARGO) build --release -p ashlar
	@scripts/part-debug-info "$${CARGO_TARGET_DIR:-target}/release/ashlar"

demo: ## serve the demo site, run the ten-VM mix against it, print its KPIs [KEEP=1 PORTAL=addr:port]
	@scripts/setup demo
	$(CARGO) build --release -p ashlar
	@scripts/part-debug-info "$${CARGO_TARGET_DIR:-target}/release/ashlar"
	@KEEP='$(KEEP)' PORTAL='$(PORTAL)' scripts/demo

# The end-to-end tests would build the program once more, with fewer features of its libraries.
test: ## run every test, also against iscsi-*, qemu-img, qemu-io and a QEMU guest
	@scripts/setup test
	target=$$($(CARGO) metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/'); \
	  ASHLAR_BIN=$$target/debug/ashlar $(CARGO) test --workspace --no-fail-fast

bench: ## measure against tgt and fio in the same run
	@scripts/setup bench
	scripts/bench

predictions: ## rehearse the published sites and write docs/internals/predictions.md [SECTIONS="B E": print these only]
	@scripts/setup build
	@mkdir -p target
	$(CARGO) run --release -p ashlar-rehearse --example predictions -- $(SECTIONS) > target/PREDICTIONS.md
	@if [ -n '$(SECTIONS)' ]; then cat target/PREDICTIONS.md; else mv target/PREDICTIONS.md docs/internals/predictions.md; fi

calibrate: ## measure this machine for rehearsals: its processor, and its drives [DRIVES="/srv /dev/sdb"]
	@scripts/setup calibrate
	scripts/calibrate
	n=0; for drive in $(or $(DRIVES),.); do n=$$((n + 1)); \
	  "$${CARGO_TARGET_DIR:-target}/release/ashlar" calibrate --name "measured-$$n" "$$drive" || exit 1; done

check-array: ## serve arrays over drives made slow and rehearse them: how far are the two apart (root)
	@scripts/setup check-array
	scripts/check-array

check-demo: ## capture the demo's array under load and rehearse it: how far are the two apart
	@scripts/setup demo
	scripts/check-demo

check-model: ## measure a drive made slow and rehearse it: how far are the two apart
	@scripts/setup check-model
	scripts/check-model

# The seeds that run by default must reach every rare path; others need not.
sim: ## run the simulator over many seeds [SEEDS=n FROM=s]
	@scripts/setup build
	@$(CARGO) run --release -p ashlar-sim -- run --seeds $(SEEDS) --from $(FROM) \
	  $(if $(filter command line environment,$(origin SEEDS) $(origin FROM)),,--marks)

# Fresh ones: the week's number is in front, as long as nobody says otherwise.
sim-weekly: ## run 100,000 fresh seeds, once a week [FROM=s]
	@scripts/setup build
	@$(CARGO) run --release -p ashlar-sim -- run --seeds 100000 --marks --from \
	  $(if $(filter command line environment,$(origin FROM)),$(FROM),$$(( $$(date +%G%V) * 1000000 )))

plants: ## show that the simulator finds every planted bug
	@scripts/setup build
	@$(CARGO) run --release -p ashlar-sim -- plants

fuzz: ## fuzz the wire formats [SECONDS=n for each target]
	@scripts/setup fuzz
	scripts/fuzz $(if $(filter command line environment,$(origin SECONDS)),$(SECONDS),60)

docs: ## write the references of docs/, and all documents as a site into target/docs
	@scripts/setup docs
	scripts/docs

# Not after build: `sudo make install` must not build as root.
install: ## install what `make build` built, man pages and completions [PREFIX=/usr/local DESTDIR=]
	@test -x "$${CARGO_TARGET_DIR:-target}/release/ashlar" || { echo 'install: run `make build` first' >&2; exit 1; }
	install -D -m 755 "$${CARGO_TARGET_DIR:-target}/release/ashlar" '$(DESTDIR)$(PREFIX)/bin/ashlar'
	manual=$$(mktemp -d) && trap 'rm -r "$$manual"' EXIT && \
	  "$${CARGO_TARGET_DIR:-target}/release/ashlar" manual "$$manual" && \
	  install -D -m 644 -t '$(DESTDIR)$(PREFIX)/share/man/man1' "$$manual"/man/*.1 && \
	  install -D -m 644 -t '$(DESTDIR)$(PREFIX)/share/bash-completion/completions' "$$manual/completions/ashlar" && \
	  install -D -m 644 -t '$(DESTDIR)$(PREFIX)/share/zsh/site-functions' "$$manual/completions/_ashlar" && \
	  install -D -m 644 -t '$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d' "$$manual/completions/ashlar.fish"

lint: ## check formatting, lints and the house rules
	@scripts/setup lint
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) test -p ashlar-tidy

fmt: ## format the sources
	$(CARGO) fmt --all

clean: ## remove everything that was built
	$(CARGO) clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' Makefile
