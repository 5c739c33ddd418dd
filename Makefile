# Two commands for a newcomer: "make demo" and "make test". Each does all its own set-up.
GO ?= go
export CGO_ENABLED ?= 0

.PHONY: all build demo test check bench fuzz clean

all: build

build:
	$(GO) build -trimpath -o bin/1bit ./cmd/1bit

demo:
	@internal/demo/demo.sh

# Everything, with the real systemd and the real engine. With ONEBIT_CI set a skipped test is a failed one.
test: check
	internal/demo/setup.sh tests
	$(GO) run ./internal/realengine/cmd/realengine fetch
	$(GO) test -count=1 -timeout 14m ./...

check:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run gofmt -w on these files"; exit 1; }
	$(GO) vet ./...

# Prints ratios against named peers measured in the same run; gates nothing.
bench:
	@internal/demo/setup.sh bench
	@$(GO) build -o bin/ ./cmd/1bit ./internal/bench ./internal/testhost/cmd/testhost
	@bin/bench

# Every fuzz target for FUZZTIME each.
FUZZTIME ?= 30s
fuzz:
	@for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for target in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go | cut -c6-); do \
			echo "$$dir $$target"; \
			$(GO) test $$dir -run='^$$' -fuzz="^$$target$$" -fuzztime=$(FUZZTIME) || exit 1; \
		done; \
	done

clean:
	rm -rf bin dist
